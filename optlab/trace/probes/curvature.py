"""The curvature of the loss along a run: eigenvalues by Lanczos, the trace by Hutchinson."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from optlab.autograd.tape.backward import backpropagate
from optlab.autograd.tensor.creation import to_tensor
from optlab.autograd.tensor.tensor import raw
from optlab.autograd.transforms.functional import hvp, value_and_grad
from optlab.backend.arrays import on_host
from optlab.nn.observe.restore_buffers import restore_buffers
from optlab.trace.loss_functions import check_takes_parameters
from optlab.trace.probes.base import Arrays, Probe, Run, Step, checked_count, documented


@documented
class Curvature(Probe):
    r"""Eigenvalues of the Hessian of a loss at the parameters after the step, and its trace.

    "sharpness" has the k largest eigenvalues, largest first, equal ones as often as they occur, by
    Lanczos' method in blocks of k vectors with full reorthogonalization, on products of the Hessian
    with vectors (`optlab.hvp`); the Hessian itself is never formed. With ``samples`` above 0,
    "hessian trace" has Hutchinson's estimate of its trace, the mean of :math:`v^T H v` over as many
    random sign vectors v, and "hessian trace error" the standard error of that mean.

    With ``alignment=True``, "alignment of gradient" has the squared cosines of the gradient of the
    loss, at the same point, with the k eigenvectors: their sum is its share in the space of these.
    "curvature along gradient" has :math:`g^T H g / g^T g`. "alignment of update" and "curvature
    along update" have the same of the change of the parameters in the step, NaN where it is zero.

    Parameters
    ----------
    loss : callable
        Takes the parameters as a dict of Tensors by their names, and returns the loss. For a
        network: ``lambda w: cross_entropy(ol.nn.functional_call(model, w, x), y)``.
    k : int
        The number of eigenvalues.
    iterations : int, optional
        The largest number of products for the eigenvalues; by default 30 k + 20. It ends earlier
        when the eigenvalues stand to `tolerance`.
    tolerance : float
        The largest residual of an eigenvalue, relative to the largest one in magnitude.
    samples : int
        The number of products for the trace; 0 leaves it out, otherwise at least 2.
    alignment : bool
        Whether gradient and update are compared with the eigenvectors. It costs a gradient and two
        products more.
    seed : int
        Of the random vectors.

    References
    ----------
    Cornelius Lanczos 1950; Michael Hutchinson 1989; Jeremy Cohen et al., Gradient descent on neural
    networks typically occurs at the edge of stability, 2021; Guy Gur-Ari, Daniel Roberts and Ethan
    Dyer, Gradient descent happens in a tiny subspace, 2018.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> w = ol.Parameter(np.array([1.0, 1.0]), name="w")
    >>> optimizer = ol.optimizer.SGD(0.01, parameters=[w])
    >>> def loss(p):
    ...     x, y = p["w"]
    ...     return 3 * x**2 + y**2
    >>> with ol.record(optimizer, probes=[ol.probes.Curvature(loss, k=2, samples=2)]) as trace:
    ...     loss({"w": w}).backward()
    ...     optimizer.step()
    >>> trace["sharpness"].round(6), trace["hessian trace"]
    (array([[6., 2.]]), array([8.]))
    """

    needs_update = False
    fits_plans = True
    shown = ("k", "samples", "alignment", "seed")

    def __init__(
        self,
        loss: Callable[[Any], Any],
        k: int = 1,
        iterations: int | None = None,
        tolerance: float = 1e-6,
        samples: int = 0,
        seed: int = 0,
        alignment: bool = False,
        **schedule: Any,
    ) -> None:
        super().__init__(**schedule)
        check_takes_parameters(loss, "Curvature")
        self.loss, self.k = loss, checked_count("k", k)
        self.iterations = (
            30 * self.k + 20 if iterations is None else checked_count("iterations", iterations, k)
        )
        if samples == 1 or isinstance(samples, bool):
            raise ValueError("samples is 0, or at least 2: one alone has no standard error; got 1.")
        self.tolerance, self.samples = tolerance, checked_count("samples", samples, 0)
        self.seed = checked_count("seed", seed, 0)
        self.alignment = True if alignment else None  # None is not shown
        self._run: Run | None = None
        self._before: np.ndarray | None = None
        self._is_checked = False

    def start(self, run: Run) -> None:
        """Prepare for a run, before its first step."""
        self._run, self._before = run, None

    def before_step(self, number: int, due: bool) -> None:
        """Keep the parameters before a step whose update is looked at."""
        if self.alignment and due and self._run is not None:
            self._before = _flattened(self._run.parameters)

    def observe(self, step: Step) -> Mapping[str, Any]:
        """Return eigenvalues and trace."""
        point = {name: array.copy() for name, array in step.parameters.items()}
        size = sum(array.size for array in point.values())
        generator = np.random.Generator(np.random.Philox(self.seed))
        if not self._is_checked:
            _check_reads(self.loss, point)
            self._is_checked = True

        def product(v: np.ndarray) -> np.ndarray:
            with restore_buffers("Curvature"):
                found = hvp(self.loss, point, _unflatten(v, point))
            return _flattened(found)

        values, vectors = largest_eigenpairs(
            product, size, self.k, self.iterations, self.tolerance, generator
        )
        found: dict[str, Any] = {"sharpness": values}
        if self.alignment:
            with restore_buffers("Curvature"):
                _, gradient = value_and_grad(self.loss)(point)
            before = np.full(size, np.nan) if self._before is None else self._before
            update = _flattened(step.parameters) - before
            for name, v in (("gradient", _flattened(gradient)), ("update", update)):
                shares, along = _alignment(v, vectors, product)
                found[f"alignment of {name}"] = shares
                found[f"curvature along {name}"] = along
            self._before = None
        if self.samples:
            signs = generator.choice([-1.0, 1.0], (self.samples, size))
            values = np.array([v @ product(v) for v in signs])
            found["hessian trace"] = np.float64(values.mean())
            error = values.std(ddof=1) / np.sqrt(self.samples)
            found["hessian trace error"] = np.float64(error)
        return found


def _flattened(arrays: Mapping[str, Any]) -> np.ndarray:
    """Return arrays as one vector of float64."""
    return np.concatenate(
        [np.asarray(on_host(raw(x)), np.float64).ravel() for x in arrays.values()]
    )


def _alignment(
    v: np.ndarray, vectors: np.ndarray, product: Callable[[np.ndarray], np.ndarray]
) -> tuple[np.ndarray, np.float64]:
    """Return the squared cosines of a vector with unit vectors, and the curvature along it."""
    length = float(np.linalg.norm(v))
    if not 0 < length < np.inf:
        return np.full(len(vectors), np.nan), np.float64(np.nan)
    unit = v / length
    return np.square(vectors @ unit), np.float64(unit @ product(unit))


def _check_reads(loss: Callable[[Any], Any], point: Arrays) -> None:
    """Raise if a loss does not depend on what it is given, so that its Hessian is 0.

    Raises
    ------
    ValueError
        The message says what to write.
    """
    given = {name: to_tensor(x, requires_grad=True) for name, x in point.items()}
    with restore_buffers("Curvature"):
        value = loss(given)
    node = getattr(value, "node", None)
    if node is not None:
        leaves = [x.node for x in given.values()]
        if any(
            g is not None for g in backpropagate(node, np.ones_like(value.data), targets=leaves)
        ):
            return
    raise ValueError(
        "the loss of Curvature does not depend on the parameters that it is given, so its "
        "curvature would be 0: it reads those of the model itself. Of a network write "
        "lambda w: loss(ol.nn.functional_call(model, w, x), y)."
    )


def _unflatten(v: np.ndarray, like: Arrays) -> Arrays:
    """Return a vector as arrays of the names, shapes and dtypes of `like`."""
    found: Arrays = {}
    place = 0
    for name, array in like.items():
        part = v[place : place + array.size]
        found[name] = part.reshape(array.shape).astype(array.dtype)
        place += array.size
    return found


def largest_eigenvalues(
    product: Callable[[np.ndarray], np.ndarray],
    size: int,
    k: int,
    iterations: int,
    tolerance: float,
    generator: np.random.Generator,
) -> np.ndarray:
    """Return the k largest eigenvalues of a symmetric matrix, largest first, by Lanczos' method.

    Parameters
    ----------
    product : callable
        Maps a vector to its product with the matrix.
    size : int
        The length of the vectors. If it is below k, NaN fills the rest.
    k, iterations, tolerance
        As of `Curvature`.
    generator : numpy.random.Generator
        For the first k vectors, and for a new one where the space of the products is exhausted (a
        matrix of several equal eigenvalues).

    Examples
    --------
    >>> matrix = np.diag([1.0, 5.0, 5.0, -7.0])
    >>> largest_eigenvalues(lambda v: matrix @ v, 4, 3, 10, 1e-9, np.random.default_rng(0)).round(6)
    array([5., 5., 1.])
    """
    return largest_eigenpairs(product, size, k, iterations, tolerance, generator)[0]


def largest_eigenpairs(
    product: Callable[[np.ndarray], np.ndarray],
    size: int,
    k: int,
    iterations: int,
    tolerance: float,
    generator: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k largest eigenvalues of a symmetric matrix, and unit eigenvectors [k, size].

    The arguments are those of `largest_eigenvalues`.

    Examples
    --------
    >>> matrix = np.diag([1.0, 2.0, 3.0])
    >>> draws = np.random.default_rng(0)
    >>> values, vectors = largest_eigenpairs(lambda v: matrix @ v, 3, 1, 9, 1e-9, draws)
    >>> values.round(6), np.abs(vectors).round(6)
    (array([3.]), array([[0., 0., 1.]]))
    """
    basis, matrix = np.zeros((0, size)), np.zeros((0, 0))
    most = min(iterations, size)
    # A Krylov space of one vector has one eigenvector of several equal eigenvalues; that of a
    # block has as many as the block is wide.
    block = _orthonormal(generator.standard_normal((min(k, most), size)), basis, generator)
    while True:
        products = np.array([product(v) for v in block])
        if not np.isfinite(products).all():
            return np.full(k, np.nan), np.full((k, size), np.nan)
        old, basis = len(basis), np.concatenate([basis, block])
        rows = products @ basis.T
        matrix = np.block([[matrix, rows[:, :old].T], [rows]])
        values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
        scale = max(float(np.abs(values).max()), np.finfo(float).tiny)
        top = vectors[:, -k:].T
        # The products of the earlier vectors lie in the basis, so that only the last ones leave it.
        beyond = products - rows @ basis
        errors = np.linalg.norm(top[:, -len(block) :] @ beyond, axis=1)
        if len(basis) >= most or (len(values) > k and (errors <= tolerance * scale).all()):
            break
        block = _orthonormal(products[: most - len(basis)], basis, generator, 1e-12 * scale)
    found, count = values[::-1][:k], min(k, len(values))
    pairs = np.full((k, size), np.nan)
    pairs[:count] = vectors[:, ::-1][:, :count].T @ basis
    return np.pad(found, (0, k - len(found)), constant_values=np.nan), pairs


def _orthonormal(
    rows: np.ndarray, basis: np.ndarray, generator: np.random.Generator, least: float = 0.0
) -> np.ndarray:
    """Return unit vectors orthogonal to a basis and to each other, from rows.

    A row of which no more than `least` is left, in an exhausted space, gives way to a random one:
    there may be copies of an equal eigenvalue outside of it.
    """
    found = basis
    for v in rows:
        for _ in range(2):  # twice: what rounding has left of the first time
            v = v - found.T @ (found @ v)
        length = float(np.linalg.norm(v))
        v = v / length if length > least else _new_direction(found, generator)
        found = np.concatenate([found, v[None]])
    return found[len(basis) :]


def _new_direction(basis: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Return a random unit vector orthogonal to a basis."""
    v: Any = generator.standard_normal(basis.shape[1])
    for _ in range(2):
        v = v - basis.T @ (basis @ v)
    found: np.ndarray = v / float(np.linalg.norm(v))
    return found
