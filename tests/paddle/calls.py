"""Calls of functions that Paddle and optlab both have, as text: the table of test_same_numbers.

``p`` is the library; the letters are Tensors of it, made of the arrays in `ARRAYS`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

ARRAYS = {
    "x": np.array([[0.5, -1.25, 2.0], [3.5, 0.75, -0.5]], "float32"),
    "y": np.array([[1.5, 0.25, -2.0], [0.5, 4.0, 1.0]], "float32"),
    "row": np.array([1.0, 2.0, -3.0], "float32"),
    "one": np.array([[0.25], [0.75]], "float32"),
    "small": np.array([0.1, 0.5, -0.3, 0.9], "float32"),
    "big": np.array([1.5, 2.0, 3.25, 7.0], "float32"),
    "nan": np.array([1.0, np.nan, -np.inf, 3.0], "float32"),
    "d": np.array([[1.5, -2.5], [0.25, 4.0]], "float64"),
    "h": np.array([1.5, -2.5, 0.25], "float16"),
    "s": np.array(2.5, "float32"),
    "i": np.array([[3, 1, 2], [0, 5, 4]], "int64"),
    "n": np.array([[3, -7, 2], [2, 5, -4]], "int64"),
    "k": np.array([4, -2, 9], "int32"),
    "u": np.array([4, 200, 9], "uint8"),
    "at": np.array([1, 0], "int64"),
    "at2": np.array([[0, 2], [1, 1]], "int64"),
    "b": np.array([[True, False, True], [False, False, True]]),
    "c": np.array([[True, True, False], [False, True, True]]),
    "cube": np.arange(24, dtype="float32").reshape(2, 3, 4) / 8 - 1,
    "flat": np.arange(6, dtype="float32").reshape(2, 1, 3, 1),
    "m": np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -0.25], [0.5, -0.25, 2.0]], "float32"),
    "image": (np.arange(50, dtype="float32").reshape(1, 2, 5, 5) * 7 % 11 - 5) / 4,
    "four": (np.arange(16, dtype="float32").reshape(1, 4, 2, 2) * 5 % 7 - 3) / 2,
    "kernel1": (np.arange(24, dtype="float32").reshape(4, 3, 2) * 3 % 7 - 3) / 4,
    "kernel2": (np.arange(54, dtype="float32").reshape(3, 2, 3, 3) * 5 % 9 - 4) / 4,
    "heads": (np.arange(24, dtype="float32").reshape(1, 3, 2, 4) * 5 % 9 - 4) / 4,
    "soft": np.array([[0.2, 0.5, 0.3], [0.6, 0.1, 0.3]], "float32"),
    "signs": np.array([[1.0, -1.0, 1.0], [-1.0, 1.0, 1.0]], "float32"),
    "ties": np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 0.0]], "float32"),
}  # fmt: skip

_UNARY = """
abs acos acosh asin asinh atan atanh ceil cos cosh deg2rad erf exp expm1 floor frac isfinite isinf
isnan log log10 log1p log2 neg rad2deg reciprocal round rsqrt sigmoid sign sin sinh sqrt square tan
tanh trunc logical_not bitwise_not numel t clone assign zeros_like ones_like rank shape
is_tensor is_floating_point is_integer is_complex tolist diag tril triu argmax argmin sum mean max
min prod amax amin all any std var median nansum nanmean cumsum cumprod logsumexp count_nonzero norm
trace argsort sort flatten squeeze unique nonzero ravel digamma lgamma isreal signbit nan_to_num
softmax
""".split()
_BINARY = """
add subtract multiply divide floor_divide mod remainder pow maximum minimum fmax fmin atan2 equal
not_equal greater_than greater_equal less_than less_equal equal_all allclose isclose logical_and
logical_or logical_xor bitwise_and bitwise_or bitwise_xor floor_mod hypot logaddexp dist
""".split()

_PAIRS = ("x, y", "i, n", "x, 2.0", "i, 2", "b, c")

_MORE = """
sum(x, 1)|sum(x, [0, 1])|sum(x, -1, keepdim=True)|sum(i, 0)|sum(k)|sum(b, 1)|sum(x > 1)|sum(u)
sum(x, dtype='float64')|sum(x, axis=(0, 1), keepdim=True)|sum(cube, [0, -1])|sum(h)|sum(x, [])
mean(x, 1)|mean(x, [0, 1])|mean(x, -1, True)|mean(cube, axis=[1, 2])|mean(d)|mean(h)|max(x, 1)
max(x, [0, 1])|max(x, 0, True)|max(i, 1)|min(x, 1)|min(x, [0, 1])|min(i, 0, keepdim=True)
prod(x, 1)|prod(x, 1, True)|prod(i)|prod(i, 0, dtype='float32')|prod(k)|prod(b)|amax(x, 1)
amin(x, [0, 1], True)|all(b, 1)|any(b, 0)|all(b, 1, True)|any(b, [0, 1])
any(b, axis=-1, keepdim=True)|std(x, 1)|std(x, [0, 1])|std(x, 1, False)|std(x, unbiased=False)
std(x, 1, True, True)|std(d)|std(row)|var(x, 1)|var(x, [0, 1])|var(x, 1, False)
var(x, unbiased=False)|var(x, 0, True, True)|var(d)|var(row)
std(x, axis=0, unbiased=True, keepdim=True)|median(x, 1)|median(row)|median(x, 1, True)
median(big)|median(x, axis=1, mode='min')|median(i)|argmax(x, 1)|argmax(x, 0, True)
argmax(x, -1, dtype='int32')|argmax(i, 1)|argmax(ties, 1)|argmin(x, 1)
argmin(ties, 1, keepdim=True)|argmin(x, axis=0, dtype='int32')|argmax(s)|cumsum(x, 0)
cumsum(x, 1)|cumsum(i)|cumsum(k)|cumsum(b)|cumsum(x, dtype='float64')|cumsum(x, -1)
cumprod(x, 0)|cumprod(k, 0)|pow(i, 2.0)|cumprod(x, 1)|cumprod(x, dim=1, dtype='float64')
logsumexp(x, 1)|logsumexp(x, [0, 1])|logsumexp(x, 0, True)|count_nonzero(x, 1)
count_nonzero(x, 0, True)|nansum(nan)|nanmean(nan)|nansum(x, 1, keepdim=True)|nanmean(x, 1)
nanmedian(x, 1)|nanmedian(nan)|quantile(x, 0.25)|quantile(x, [0.25, 0.5], 1)
quantile(x, 0.5, axis=0, keepdim=True)|quantile(d, 0.3)|norm(x)|norm(x, 2)|norm(x, 1)
norm(x, 2, 1)|norm(x, 'fro')|norm(x, p=1, axis=0)|norm(x, float('inf'))|norm(x, 1, 1, True)
norm(x, 'fro', [0, 1])|norm(x, float('inf'), 1)|norm(x, 0, 1)|norm(row)|norm(cube)|norm(x, 3)
norm(m, axis=[0, 1])|norm(m, float('inf'), [0, 1])|norm(m, 'fro', [0, 1])|norm(cube, axis=2)
norm(m, 2, [0, 1])|norm(m, 1, [0, 1])|norm(x, -float('inf'))|norm(x, keepdim=True)
norm(cube, p='fro', axis=[1, 2])|norm(cube, p=2, axis=[0, 1])|norm(m, 'nuc', [0, 1])|dist(x, y)
dist(x, y, 1)|dist(x, y, float('inf'))|dist(x, y, 0)|trace(m, 1)|trace(cube, 0, 1, 2)|diff(row)
diff(x, axis=0)|diff(x, n=2)|diff(row, prepend=row)|full([2], 1)|full([2], 1.5)|full([2], True)
full([2], 1, 'int64')|full(shape=[1, 2], fill_value=3)|full([], 2)|full((2, 1), 2)
full_like(x, 2)|full_like(i, 2.7)|full_like(x, 1, 'int32')|full_like(b, 1)
full_like(i, 3, dtype='float32')|zeros_like(x, 'int64')|ones_like(i, dtype='float32')
zeros_like(b)|zeros([2])|zeros([2, 3], 'int64')|ones([2])|ones((1, 2), 'bool')|zeros([])|eye(2)
eye(2, 3)|eye(3, dtype='int64')|zeros(shape=[3])|ones(shape=[3], dtype='float64')|arange(4)
arange(1, 4)|arange(0, 1, 0.25)|arange(4.0)|arange(1, 4, 2, 'float64')|arange(5, 0, -2)
arange(3, dtype='float32')|arange(1, 3.5)|arange(start=0, end=6, step=2)|linspace(0, 1, 5)
linspace(0, 10, 5, 'int64')|linspace(0, 1, 3, dtype='float64')|linspace(1, 10, 1)
logspace(0, 2, 3)|logspace(0, 2, 3, 2)|to_tensor(1)|to_tensor(1.5)|to_tensor(True)
to_tensor([1, 2.5])|to_tensor([1], dtype='float32')|to_tensor([[1, 2]])|to_tensor(x)
to_tensor([True, False])|to_tensor((1, 2))|to_tensor([x[0, 0], x[0, 1]])|meshgrid(row, at)
meshgrid([row, row])|tril_indices(3, 3, 0)|triu_indices(3, 3, 1)|tril_indices(3)
triu_indices(2)|one|concat([x, y])|concat([x, y], 1)|concat([x, y], axis=-1)|concat([i, i])
concat((x, y), 0)|concat([k, row])|stack([x, y])|stack([x, y], 2)|stack([x, y], axis=-1)
stack((row, row))|hstack([x, y])|vstack([x, y])|dstack([x, y])|split(x, 3, 1)
split(x, [1, 2], 1)|split(x, [1, -1], axis=1)|split(x, 2)|split(cube, 2, -1)|chunk(x, 3, 1)
split(x, num_or_sections=[2, 1], axis=-1)|chunk(cube, 2, axis=-1)|chunk(row, 2)|unbind(x)
unbind(x, 1)|unstack(x)|unstack(x, axis=1)|tensor_split(row, 2)|vsplit(x, 2)|hsplit(x, 3)
tensor_split(x, [1], axis=1)|reshape(x, [3, 2])|reshape(x, [-1])|reshape(x, [0, -1])
reshape(cube, [0, 0, 2, 2])|reshape(x, (6, 1))|reshape(x, shape=[1, 6])|reshape(cube, [-1, 0])
reshape(s, [1])|flatten(cube)|flatten(cube, 1)|flatten(cube, 0, 1)
flatten(cube, start_axis=-2, stop_axis=-1)|flatten(s)|squeeze(flat)|squeeze(flat, 1)
squeeze(flat, [1, 3])|squeeze(flat, 0)|squeeze(flat, axis=-1)|squeeze(flat, [0, 1])
unsqueeze(x, 0)|unsqueeze(x, -1)|unsqueeze(x, [0, 2])|unsqueeze(x, axis=1)
unsqueeze(x, [0, -1])|transpose(x, [1, 0])|transpose(cube, perm=[2, 0, 1])
transpose(x=cube, perm=[0, 2, 1])|transpose(cube, [-1, 0, 1])|t(x)|t(row)|t(s)
moveaxis(cube, 0, 2)|moveaxis(cube, [0, 1], [1, 2])|swapaxes(cube, 0, 1)
swapaxes(x, axis0=0, axis1=1)|flip(x, 0)|flip(x, [0, 1])|flip(cube, axis=-1)|roll(x, 1)
roll(x, 1, 0)|roll(x, [1, 2], [0, 1])|roll(x, shifts=-1, axis=1)|rot90(x)|rot90(x, 2, [0, 1])
tile(row, 2)|tile(x, [2, 1])|tile(row, [2, 1, 2])|tile(x, repeat_times=[1, 2])|tile(s, [2])
expand(row, [2, 3])|expand(one, [2, 4])|expand(one, shape=[-1, 4])|expand(row, [2, -1])
expand_as(row, x)|expand_as(one, x)|broadcast_to(row, [2, 3])|broadcast_to(one, shape=[2, 3])
broadcast_to(one, [-1, 3])|broadcast_tensors([one, row])|repeat_interleave(row, 2)
repeat_interleave(x, 2, 1)|repeat_interleave(row, at2[0])|unflatten(cube, 2, [2, 2])
atleast_1d(s)|atleast_2d(row)|atleast_3d(row)|broadcast_shape([2, 1], [3])|cast(x, 'int64')
cast(x, 'float64')|cast(i, 'float32')|cast(b, 'int32')|cast(x, 'bool')|cast(x, dtype='float16')
cast(i, p.float32)|cast(x, p.int32)|increment(one[0])|increment(i[0, :1], 2)|gather(x, at)
gather(x, at, 1)|gather(row, at)|gather(x, index=at, axis=-1)|gather(x, at2[:, :1], 1)
gather_nd(x, at2)|gather_nd(x, at2[:, :1])|gather(x, s > 0)|index_select(x, at)
index_select(x, at, 1)|index_select(x, index=at, axis=-1)|index_sample(x, at2)
take_along_axis(x, at2, 1)|take_along_axis(x, i[:1] * 0, 0)
take_along_axis(x, at2, axis=1, broadcast=False)|take(x, at)|masked_select(x, b)
masked_fill(x, b, 9.0)|where(b, x, y)|where(b)|where(x > 0, x, row)|where(b, x, 0.0)
where(b, x, 0)|where(b, i, i * 2)|where(b, i, x)|where(b, 1.0, 2.0)|nonzero(b)
nonzero(b, as_tuple=True)|nonzero(row)|scatter(x, at, y)|scatter(x, at, y, False)
scatter(x, at2[1], y, False)|scatter(row, at, big[:2])|scatter(x, at2[1], y, overwrite=True)
scatter_nd(at2[1:], big[:1], [3, 3])|scatter_nd_add(x, at2, big[:2])
scatter_nd_add(x, at2[:, :1], y * 2)|put_along_axis(x, at2, 9.0, 1)
put_along_axis(x, at2, y[:, :2], 1)|put_along_axis(x, at2, y[:, :2], 1, 'add')
put_along_axis(x, at2, 2.0, axis=1, reduce='mul')|index_add(x, at, 0, y)
index_add(x, at2[1], 1, y[:, :2])|index_fill(x, at, 1, 5.0)|index_put(x, (at, at), big[:2])
index_put(x, (at2[1], at2[1]), big[:2], True)|multiplex([x, y], at.reshape([2, 1]))|topk(x, 2)
topk(x, 2, 1)|topk(x, 1, 0)|topk(x, 2, largest=False)|topk(x, k=2, axis=-1)|topk(i, 1)
topk(x, 2, -1, True, True)|topk(ties, 2)|sort(x)|sort(x, 0)|sort(x, -1, True)
sort(x, axis=1, descending=True)|argsort(x, 0)|argsort(x, -1, True)
argsort(ties, descending=True, stable=True)|argsort(ties, stable=True)|sort(i)|kthvalue(x, 2)
kthvalue(x, 1, 0, True)|mode(ties)|searchsorted(big, row)|searchsorted(big, row, right=True)
searchsorted(big, row, out_int32=True)|bucketize(row, big)|bucketize(x, big, right=True)
unique(i)|unique(ties)|unique(ties, return_counts=True)|unique(ties, True, True, True)
unique(ties, axis=0)|unique_consecutive(ties)|bincount(i[0])|bincount(i[0], minlength=6)
bincount(i[0], weights=row)|histogram(x, 4)|histogram(x, bins=3, min=-1, max=2)|isin(x, row)
isin(i, at)|tril(m, 1)|triu(m, diagonal=-1)|tril(cube)|triu(x, 1)|diag(row)|diag(m, 1)
diag(row, padding_value=2)|diag(row, -1)|diagflat(row)|diagonal(m)|diagonal(cube, 1, 1, 2)
diag_embed(row)|diag_embed(x, 1)|kron(one, row)|matmul(x, y, transpose_y=True)
matmul(x, y, True)|matmul(x, y, transpose_x=True)|matmul(x, row)|matmul(row, row)
matmul(cube, cube, transpose_y=True)|matmul(x, m)|matmul(x, cube[0])
matmul(i, i, transpose_y=True)|mm(x, m)|bmm(cube, transpose(cube, [0, 2, 1]))|mv(x, row)
dot(row, row)|dot(x, y)|inner(x, y)|inner(x, row)|outer(row, row)|outer(x, row)|cross(m, m)
cross(x, y, 1)|addmm(x, x, m)|addmm(x, x, m, 0.5, 2.0)
addmm(input=x, x=x, y=m, beta=2.0, alpha=1.0)|einsum('ij,kj->ik', x, y)|einsum('ii', m)
tensordot(x, m, 1)|tensordot(x, y, axes=[[1], [1]])|multi_dot|add(x, row)|add(x, one)|add(i, i)
add(i, x)|add(k, i)|add(b, b)|subtract(x, row)|subtract(row, one)|multiply(x, one)
multiply(k, x)|divide(x, one)|divide(i, i + 1)|divide(k, k)|divide(i, x)|divide(h, h)
multiply(h, x[0])|add(d[0], x[0, :2])|add(u, k)|maximum(i, n)|maximum(x, row)|minimum(i, x)
minimum(row, one)|floor_divide(n, i + 1)|floor_divide(x, y)|mod(n, i + 1)|mod(x, y)
remainder(n, i - 6)|mod(x, -y)|floor_mod(n, i + 2)|pow(x, 2)|pow(x, 2.0)|pow(i, 2)
pow(big, 0.5)|pow(big, row[0])|pow(i, i)|pow(2.0, x)|pow(i, 0.5)|pow(x, y=3)|clip(x, 0, 1)
clip(x, min=0.0)|clip(x, max=1.0)|clip(x, -1.0, 1.0)|clip(i, 1, 4)|clip(i, 1.5, 3.5)
clip(x, x[0, 0], x[0, 2])|scale(x, 2.0)|scale(x, 2.0, 1.0)
scale(x, scale=2.0, bias=1.0, bias_after_scale=False)|scale(i, 2)|lerp(x, y, 0.5)
lerp(x, y, one)|add_n([x, y])|add_n(x)|round(x, 1)|round(big * 0.5)|nan_to_num(nan)
nan_to_num(nan, 1.0, 9.0, -9.0)|rsqrt(big)|log(big)|log2(big)|log10(big)|log1p(big)|sqrt(big)
acosh(big)|acos(small)|asin(small)|atanh(small)|logit(small[:2])|heaviside(x, y)|copysign(x, y)
multiply(x, 2.0)|stanh(x)|erfinv(small)|sqrt(i)|exp(i)|log(i + 1)|sin(k)|tanh(i)|sigmoid(i)
exp(k)|exp(h)|exp(d)|abs(k)|square(i)|sign(i)|floor(i)|ceil(i)|round(i)|reciprocal(i + 1)
rsqrt(i + 1)|equal(x, 0.5)|equal(i, i)|equal(i, x)|not_equal(x, y)|greater_than(x, row)
greater_equal(i, 3)|less_than(x, 0.5)|less_equal(x, one)|equal_all(x, x)|equal_all(x, y)
equal_all(x, row)|allclose(x, x)|allclose(x, x + 1e-6)|allclose(x, x + 1e-3)
allclose(x, x + 1e-3, atol=1e-2)|allclose(nan, nan)|allclose(nan, nan, equal_nan=True)
isclose(x, x + 1e-6)|isclose(nan, nan, equal_nan=True)|isclose(x, y, rtol=0.5, atol=1.0)
logical_and(b, c)|logical_and(x, i)|logical_or(b, c)|logical_xor(b, c)|logical_not(x)
bitwise_and(i, n)|bitwise_or(b, c)|bitwise_not(i)|bitwise_xor(i, n)|numel(x)|numel(s)|shape(x)
rank(x)|is_tensor(3)|is_empty(x)|in_dynamic_mode()|get_default_dtype()|is_grad_enabled()
isfinite(nan)|isnan(nan)|isinf(nan)|hypot(x, row)|logaddexp(x, y)|fmax(nan, big)|fmin(nan, big)
maximum(nan, big)|minimum(nan, big)|sign(nan)|sum(nan)|max(nan)|atan2(x, row)
expand(x, [2, 2, 3])|rot90(cube, 1, [1, 2])|strided_slice(x, [1], [0], [3], [2])
slice(x, [0, 1], [0, 1], [1, 3])|crop(x, [1, 2], [0, 1])|cummax(x, 1)|cummin(x, 1)
logcumsumexp(x, 1)|vander(row, 3)|angle(x)|conj(x)|real(x)|gcd(i, n)|lcm(i + 1, i + 2)
deg2rad(i)|column_stack([row, row])|row_stack([row, row])|block_diag([x, m])|cdist(x, y)
tolist(x)|tolist(i)|view(x, [3, 2])|randn_like|trapezoid(row)|cumulative_trapezoid(row)|cov
"""  # fmt: skip

_OPERATORS = """
i / 2|i / i.astype('int64').clip(1, 9)|2 / (i + 1)|k / 2|u / 2|b / 2|i / 2.0|i // 2|i % 2
i ** 2|i * 2.5|i + 1.5|2.5 * i|2.5 - i|i - 0.5|i // 0.5|i % 1.5|k * 0.5|1.5 // (i + 1)|n // 2
n % 3|n // -2|n % -3|x / 2|2 / x|x // 1|x % 1|x ** 2|i / x|i * x|i + x|k * x|k + i|u + k|b + i
x > 1|x == y|i == 2|-x|abs(x)|~b|b & c|b \\| c|b ^ c|x @ row|h * x[0]|d * 2|d[0] * x[0, :2]
h / 2|h * 2.5|(x > 1).sum()|(x > 1).astype('float32').mean()|x[x > 0]|x[b]|x[at]|x[:, 1]|x[0]
x[..., -1]|x[None]|x[1, 2]|x.T|x[at, at]|x[i > 2]|i[0]
""".replace("\\|", "__OR__")  # fmt: skip

_LINALG = """
norm(x)|norm(x, 2)|norm(x, 1)|norm(x, 'fro')|norm(x, axis=1)|norm(m, 2, [0, 1])
norm(m, 'nuc', [0, 1])|norm(cube)|norm(x, float('inf'))|vector_norm(x)|vector_norm(x, 3, 1)
matrix_norm(x)|det(m)|slogdet(m)|inv(m)|solve(m, row.reshape([3, 1]))|solve(m, row)|cholesky(m)
cholesky(m, True)|matrix_power(m, 3)|matrix_power(m, -1)|matrix_rank(m)|pinv(m)|cond(m)
multi_dot([x, m, m])|eigvalsh(m)|eigh(m)|qr(m)|qr(x, 'r')|svd(x)|svd(x, full_matrices=True)
svdvals(x)|triangular_solve(m, x.T)|triangular_solve(m, x.T, upper=False)
cholesky_solve(x.T, m)|lstsq(x.T, row.reshape([3, 1]))|cov(x)|corrcoef(x)|matmul(x, m)
matmul(x, y, transpose_y=True)|dot|cross(m, m)|matrix_transpose(x)|diagonal(m)|matrix_exp(m)
inverse(m)
""".strip()  # fmt: skip

_FUNCTIONAL = """
adaptive_avg_pool1d(cube, 2)|adaptive_avg_pool2d(image, 2)|adaptive_avg_pool2d(image, [3, 2])
adaptive_max_pool1d(cube, 2)|adaptive_max_pool2d(image, [2, 3])|avg_pool1d(cube, 2)
avg_pool2d(image, 2)|avg_pool2d(image, 3, 2, 1)|avg_pool2d(image, 3, 2, 1, exclusive=False)
avg_pool2d(image, 2, ceil_mode=True)|max_pool1d(cube, 2)|max_pool2d(image, 3, 2, 1)
max_pool2d(image, [2, 3])|max_pool2d(image, 2, return_mask=True)|lp_pool1d(cube, 2.0, 2)
lp_pool2d(image, 2.0, 2)|conv1d(cube, kernel1)|conv1d(cube, kernel1, padding=1, stride=2)
conv2d(image, kernel2)|conv2d(image, kernel2, padding=1, stride=2)
conv2d(image, kernel2, big[:3])|conv2d(image, kernel2, padding='SAME')
conv2d(image, kernel2, dilation=2)|conv2d(image[:, :1], kernel2[:, :1])
conv1d_transpose(cube, kernel1[:3])|conv2d_transpose(image, kernel2[:2])
conv2d_transpose(image, kernel2[:2], stride=2, padding=1)
batch_norm(image, big[:2], big[2:], big[:2], big[2:])|layer_norm(x, 3)
layer_norm(x, [3], row, row)|layer_norm(image, [5, 5])|group_norm(image, 2)
instance_norm(image)|local_response_norm(image, 3)|normalize(x)|normalize(x, p=1, axis=0)
cosine_similarity(x, y)|cosine_similarity(x, y, axis=0)|pairwise_distance(x, y)
pairwise_distance(x, y, p=1.0, keepdim=True)|bilinear(x, x, cube[:, :, :3])|linear(x, m)
linear(x, m, row)|embedding(at2, m)|embedding(i % 3, m, padding_idx=0)|one_hot(at, 3)
one_hot(at2, 4)|label_smooth(x)|label_smooth(x, epsilon=0.2)|sequence_mask(at + 1)
sequence_mask(at + 1, 4)|pad(x, [1, 2])|pad(image, [1, 0, 2, 1])
pad(image, [1, 1, 1, 1], 'reflect')|pad(cube, [1, 2], 'replicate')
pad(image, [1, 1, 1, 1], 'circular')|pad(image, 1, value=3.0)
pad(cube, [1, 2], 'constant', 2.0, data_format='NCL')|zeropad2d(image, [1, 0, 2, 1])
fold(cube[:, :, :4].reshape([1, 12, 2]), [3, 2], 2)|unfold(image, 2)
unfold(image, [2, 3], 2, 1)|interpolate(image, [7, 8])|interpolate(image, scale_factor=2)
interpolate(image, [7, 8], mode='bilinear')
interpolate(image, [3, 3], mode='bilinear', align_corners=True)|upsample(image, scale_factor=2)
interpolate(image, [8, 8], mode='bicubic')|interpolate(image, [3, 3], mode='area')
interpolate(cube, [6], mode='linear', data_format='NCW')|channel_shuffle(four, 2)
pixel_shuffle(four, 2)|pixel_unshuffle(image[:, :, :4, :4], 2)|cross_entropy(x, at)
cross_entropy(x, at.reshape([2, 1]))|cross_entropy(x, at, reduction='none')
cross_entropy(x, at.reshape([2, 1]), reduction='none')|cross_entropy(x, at, reduction='sum')
cross_entropy(x, at, weight=big[:3])|cross_entropy(x, at, weight=big[:3], reduction='none')
cross_entropy(x, at, ignore_index=1)|cross_entropy(x, at, label_smoothing=0.1)
cross_entropy(x, soft, soft_label=True)|cross_entropy(soft, at, use_softmax=False)
cross_entropy(x, soft, soft_label=True, reduction='none')
cross_entropy(cube, p.expand(at2[:, :1], [2, 4]), axis=1)|nll_loss(log_softmax(x), at)
nll_loss(x, at, weight=big[:3])|nll_loss(x, at, reduction='none')|mse_loss(x, y)
mse_loss(x, y, reduction='sum')|square_error_cost(x, y)|l1_loss(x, y)|l1_loss(x, y, 'none')
smooth_l1_loss(x, y)|smooth_l1_loss(x, y, 'none', 0.5)|huber_loss(x, y)
huber_loss(x, y, delta=0.5)|binary_cross_entropy(soft, soft)
binary_cross_entropy(soft, soft, reduction='none')|binary_cross_entropy_with_logits(x, soft)
binary_cross_entropy_with_logits(x, soft, pos_weight=big[:3])|kl_div(x, soft)
kl_div(x, soft, 'batchmean')|kl_div(x, soft, 'none')|kl_div(x, x, log_target=True)
hinge_embedding_loss(x, signs)|cosine_embedding_loss(x, y, signs[:, 0])
soft_margin_loss(x, signs)|margin_ranking_loss(x, y, signs)
multi_label_soft_margin_loss(x, soft)|multi_margin_loss(x, at)|poisson_nll_loss(x, y)
poisson_nll_loss(x, soft, full=True)|gaussian_nll_loss(x, y, soft)
triplet_margin_loss(x, y, x * 0.5)|triplet_margin_with_distance_loss(x, y, x * 0.5)
log_loss(soft, soft)|sigmoid_focal_loss(x, soft)|dice_loss(soft, at.reshape([2, 1]))
npair_loss(x, y, at.astype('float32'))|celu(x)|celu(x, 0.5)|elu(x)|elu(x, 0.5)|gelu(x)
gelu(x, approximate=True)|glu(cube)|hardshrink(x)|hardsigmoid(x)|hardswish(x)|hardtanh(x)
leaky_relu(x)|leaky_relu(x, 0.2)|log_sigmoid(x)|log_softmax(x)|log_softmax(x, 0)
log_softmax(x, dtype='float64')|maxout(four, 2)|mish(x)|prelu(four, big)|relu(x)
prelu(x, row[:1])|relu6(x)|selu(x)|sigmoid(x)|silu(x)|softmax(x)|softmax(x, 0)
softmax(i.astype('float32'))|softmax(x, dtype='float64')|softplus(x)|softplus(x, 2.0, 1.0)
softshrink(x)|softsign(x)|swish(x)|tanh(x)|tanhshrink(x)|thresholded_relu(x)|swiglu(cube)
swiglu(x, y)|relu(i)|dropout(x, 0.5, training=False)
dropout(x, 0.5, training=False, mode='downscale_in_infer')
alpha_dropout(x, 0.5, training=False)|scaled_dot_product_attention(heads, heads, heads)
rms_norm(x, [3], row)|scaled_dot_product_attention(heads, heads, heads, is_causal=True)
""".strip()


def _split(text: str) -> list[str]:
    parts = [part.strip() for line in text.strip().splitlines() for part in line.split("|")]
    return [part.replace("__OR__", "|") for part in parts if part]


def calls() -> list[str]:
    """Return all calls as expressions."""
    made = [f"p.{name}({a})" for name in _UNARY for a in ("x", "i", "s", "b")]
    made += [
        f"p.{name}({a})" for name in _BINARY for a in ("x, y", "i, n", "x, 2.0", "i, 2", "b, c")
    ]
    made += [f"p.{call}" for call in _split(_MORE) if "(" in call]
    made += [f"p.linalg.{call}" for call in _split(_LINALG) if "(" in call]
    made += [f"p.nn.functional.{call}" for call in _split(_FUNCTIONAL)]
    made += _split(_OPERATORS)
    return list(dict.fromkeys(made))


def tensors(library: Any) -> dict[str, Any]:
    """Return the Tensors of `ARRAYS` in a library, and the names of functions used as arguments."""
    made = {name: library.to_tensor(array) for name, array in ARRAYS.items()}
    functions = {
        "transpose": library.transpose,
        "log_softmax": library.nn.functional.log_softmax,
    }
    return {**made, **functions, "p": library}
