"""Floor 1: Paddle's names for NumPy's functions, with the arguments that its documents print.

``ol.concat(x, axis=0)`` is ``np.concatenate``, ``ol.std(x)`` is unbiased, ``ol.sqrt`` of integers
is float32: a function of `optlab` gives the numbers, dtypes and shapes of Paddle, or there is no
such name, or the call is refused, and the error says what to write. NumPy's functions
(``np.std(t)``), methods of Tensors (``t.std()``) and `optlab.numpy` give NumPy's.

Tensors give Tensors, and so do truth arrays, which is what comparisons of Tensors are
(``ol.sum(x > 0)``). Other arrays give arrays, as in NumPy.

====================  ==============================================================================
file                  what it holds
====================  ==============================================================================
``elementwise.py``    ``sqrt``, ``add``, ``clip``, ``cast``: an element at a time
``comparisons.py``    ``equal``, ``logical_and``, ``allclose``, ``isnan``
``reductions.py``     ``sum``, ``std``, ``argmax``, ``cumsum``, ``norm``: along axes
``shapes.py``         ``reshape``, ``transpose``, ``concat``, ``split``, ``tile``
``indexing.py``       ``gather``, ``scatter``, ``where``, ``topk``, ``sort``, ``triu``
``creation.py``       ``zeros_like``, ``linspace``, ``assign``
``products.py``       ``matmul``, ``dot``, ``outer``, ``einsum``
``linalg.py``         ``ol.linalg``
``metric.py``         ``ol.metric``
``elsewhere.py``      what to write for names that are not there
``arguments.py``      how these functions read arguments
====================  ==============================================================================
"""
