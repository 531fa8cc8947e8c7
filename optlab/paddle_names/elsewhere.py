"""What to write for Paddle's names that are not in `optlab`.

The sentences are read when such a name is asked for: ``ol.vision`` raises an AttributeError.
"""

from __future__ import annotations

_LOOP = (
    "write the loop: for x, y in ol.io.DataLoader(data, batch_size=64): loss = "
    "ol.nn.functional.cross_entropy(net(x), y); loss.backward(); optimizer.step(); "
    "optimizer.clear_grad()"
)
_EAGER = "everything runs as it is called, and there are no static graphs: leave it out"

#: Name -> what to write. Every sentence stands behind "optlab has no name 'vision': ".
SENTENCES = {
    "vision": "there are no data sets, transforms and models of pictures. Pictures are arrays, and "
    "a transform is a function of one: write normalize = lambda image: image / 127.5 - 1, and "
    "ol.io.TensorDataset([images, labels]) of arrays of shape (n, channels, height, width), or a "
    "subclass of ol.io.Dataset (ol.data.digits() has small pictures); models are built of ol.nn",
    "Model": f"there is no trainer of high level; {_LOOP}",
    "hapi": f"there is no trainer of high level; {_LOOP}",
    "callbacks": "callbacks belong to Model; in a loop of your own write their lines where they "
    "are to run: print(loss.item()), ol.save(net.state_dict(), path), break; what a run computes "
    "is kept by ol.record(optimizer)",
    "text": "there are no texts' data sets. Numbers of words are arrays: write "
    "ol.io.TensorDataset([ids, labels]) of integer arrays, or a subclass of ol.io.Dataset; "
    "ol.data has tokenizers and small texts",
    "dataset": "write a subclass of ol.io.Dataset, or ol.io.TensorDataset([inputs, labels])",
    "reader": "write ol.io.DataLoader(data, batch_size=..., shuffle=True)",
    "batch": "write ol.io.DataLoader(data, batch_size=...)",
    "audio": "there are no sounds' data sets and features; np.fft takes Tensors",
    "static": _EAGER,
    "enable_static": _EAGER,
    "inference": "a trained layer is called as it is: net.eval(), then net(x)",
    "onnx": "write ol.save(net.state_dict(), path); a layer has no other file",
    "hub": "models are built of ol.nn, ol.models has a small GPT",
    "DataParallel": "one process computes on one device: leave it out, net itself is trained",
    "device": "write ol.set_device('cpu' or 'gpu') and ol.get_device()",
    "cuda": "write ol.set_device('gpu'); how many bytes are in use says ol.memory",
    "CPUPlace": "places are text: write place='cpu', or ol.set_device('cpu')",
    "CUDAPlace": "places are text: write place='gpu', or 'gpu:1', or ol.set_device('gpu')",
    "is_compiled_with_cuda": "ol.doctor() says whether there is a GPU, ol.set_device('gpu') "
    "uses it",
    "set_grad_enabled": "write with ol.no_grad(): or with ol.enable_grad():",
    "summary": "write ol.nn.summary(net, input_size)",
    "flops": "ol.nn.summary(net, input_size) counts parameters",
    "distribution": "write ol.normal, ol.uniform, ol.bernoulli, ol.multinomial, or functions of "
    "optlab.numpy.random, whose draws keep gradients",
    "sparse": "arrays are dense; gradients of ol.nn.Embedding(sparse=True) are stored by rows",
    "fft": "NumPy's functions take Tensors, write np.fft.rfft(x)",
    "signal": "NumPy's functions take Tensors, write np.convolve(x, y) or np.fft.rfft(x)",
    "quantization": "there is no quantization; ol.amp computes in 16 bits",
    "profiler": "write python -m cProfile, or time.perf_counter() around the lines",
    "utils": "ol.doctor() says what is installed, ol.nn.utils has clips and vectors of parameters",
    "set_printoptions": "Tensors print as arrays do, write np.set_printoptions(precision=...)",
    "set_flags": "there are no flags: leave it out",
    "complex64": "Tensors hold real numbers; take real and imaginary parts apart",
    "complex128": "Tensors hold real numbers; take real and imaginary parts apart",
    "rand_like": "write ol.rand(x.shape, x.dtype)",
    "randn_like": "write ol.randn(x.shape, x.dtype)",
    "randint_like": "write ol.randint(low, high, x.shape)",
    "is_complex": "Tensors hold real numbers",
    "tensor_split": "write np.array_split(x, n, axis)",
    "unflatten": "write ol.reshape(x, shape)",
    "bucketize": "write ol.searchsorted(edges, x)",
    "mode": "ol.unique(x, return_counts=True) counts",
    "cummax": "write np.maximum.accumulate(x, axis)",
    "cummin": "write np.minimum.accumulate(x, axis)",
    "logcumsumexp": "write np.logaddexp.accumulate(x, axis)",
    "cat": "write ol.concat([...], axis=0)",
    "permute": "write ol.transpose(x, perm)",
    "mul": "write ol.multiply(x, y), or x * y",
    "clamp": "write ol.clip(x, min, max)",
    "ne": "write ol.not_equal(x, y)",
    "eq": "write ol.equal(x, y)",
    "gt": "write ol.greater_than(x, y)",
    "ge": "write ol.greater_equal(x, y)",
    "lt": "write ol.less_than(x, y)",
    "le": "write ol.less_equal(x, y)",
    "view": "write ol.reshape(x, shape)",
    "slice": "write x[0:2, 1:3]",
    "strided_slice": "write x[::2]",
    "crop": "write x[0:2, 1:3]",
    "index_fill": "write y = x.copy(), then y[index] = value, which is recorded",
    "index_put": "write y = x.copy(), then y[index] = value, which is recorded",
    "digamma": "scipy.special.digamma takes Tensors",
    "lgamma": "scipy.special.gammaln takes Tensors",
    "softmax": "write ol.nn.functional.softmax(x)",
    "relu": "write ol.nn.functional.relu(x)",
    "one_hot": "write ol.nn.functional.one_hot(x, num_classes)",
}
