"""Neural-network functions; the files are named by subject, each rule stands beside its function.

Everywhere, ``name`` must be None: results have no names here.
"""

from optlab.backend.foreign_arguments import hint as _hint
from optlab.backend.wrong_arguments import explain_all as _explain_all
from optlab.nn.functional.activation.erf import erf, gelu
from optlab.nn.functional.activation.gates import gumbel_softmax, sequence_mask, swiglu
from optlab.nn.functional.activation.rectifiers import (
    celu,
    elu,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    prelu,
    relu,
    relu6,
    selu,
)
from optlab.nn.functional.activation.shrinkage import (
    hardshrink,
    softshrink,
    tanhshrink,
    thresholded_relu,
)
from optlab.nn.functional.activation.smooth import (
    glu,
    log_sigmoid,
    log_softmax,
    maxout,
    mish,
    sigmoid,
    silu,
    softmax,
    softplus,
    softsign,
    swish,
    tanh,
)
from optlab.nn.functional.affine import embedding, linear
from optlab.nn.functional.attention import scaled_dot_product_attention
from optlab.nn.functional.conv.conv import conv1d, conv2d, conv3d
from optlab.nn.functional.conv.transposed import (
    conv1d_transpose,
    conv2d_transpose,
    conv3d_transpose,
)
from optlab.nn.functional.distance import (
    bilinear,
    cosine_similarity,
    normalize,
    pairwise_distance,
)
from optlab.nn.functional.dropouts import alpha_dropout, dropout, dropout2d, dropout3d
from optlab.nn.functional.loss.cross_entropy import (
    cross_entropy,
    nll_loss,
    softmax_with_cross_entropy,
)
from optlab.nn.functional.loss.labels import label_smooth, one_hot
from optlab.nn.functional.loss.likelihood import (
    dice_loss,
    gaussian_nll_loss,
    log_loss,
    multi_label_soft_margin_loss,
    poisson_nll_loss,
    sigmoid_focal_loss,
)
from optlab.nn.functional.loss.margin import (
    hinge_embedding_loss,
    margin_ranking_loss,
    soft_margin_loss,
)
from optlab.nn.functional.loss.ranking import (
    cosine_embedding_loss,
    multi_margin_loss,
    npair_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from optlab.nn.functional.loss.regression import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    smooth_l1_loss,
    square_error_cost,
)
from optlab.nn.functional.norm.batch_norm import batch_norm
from optlab.nn.functional.norm.group_norm import group_norm, instance_norm, local_response_norm
from optlab.nn.functional.norm.layer_norm import layer_norm, rms_norm
from optlab.nn.functional.padding import pad, zeropad2d
from optlab.nn.functional.pooling.adaptive import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
)
from optlab.nn.functional.pooling.lp import lp_pool1d, lp_pool2d
from optlab.nn.functional.pooling.pooling import (
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
)
from optlab.nn.functional.pooling.unpooling import max_unpool1d, max_unpool2d, max_unpool3d
from optlab.nn.functional.resampling import interpolate, upsample
from optlab.nn.functional.sampling import affine_grid, grid_sample
from optlab.nn.functional.vision import (
    channel_shuffle,
    fold,
    pixel_shuffle,
    pixel_unshuffle,
    unfold,
)

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "adaptive_max_pool3d", "affine_grid", "alpha_dropout", "avg_pool1d",
    "avg_pool2d", "avg_pool3d", "batch_norm", "bilinear", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "celu", "channel_shuffle", "conv1d", "conv1d_transpose",
    "conv2d", "conv2d_transpose", "conv3d", "conv3d_transpose", "cosine_embedding_loss",
    "cosine_similarity", "cross_entropy", "dice_loss", "dropout", "dropout2d", "dropout3d", "elu",
    "embedding", "erf", "fold", "gaussian_nll_loss", "gelu", "glu", "grid_sample", "group_norm",
    "gumbel_softmax", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "hinge_embedding_loss",
    "huber_loss", "instance_norm", "interpolate", "kl_div", "l1_loss", "label_smooth", "layer_norm",
    "leaky_relu", "linear", "local_response_norm", "log_loss", "log_sigmoid", "log_softmax",
    "lp_pool1d", "lp_pool2d", "margin_ranking_loss", "max_pool1d", "max_pool2d", "max_pool3d",
    "max_unpool1d", "max_unpool2d", "max_unpool3d", "maxout", "mish", "mse_loss",
    "multi_label_soft_margin_loss", "multi_margin_loss", "nll_loss", "normalize", "npair_loss",
    "one_hot", "pad", "pairwise_distance", "pixel_shuffle", "pixel_unshuffle", "poisson_nll_loss",
    "prelu", "relu", "relu6", "rms_norm", "scaled_dot_product_attention", "selu", "sequence_mask",
    "sigmoid", "sigmoid_focal_loss", "silu", "smooth_l1_loss", "soft_margin_loss", "softmax",
    "softmax_with_cross_entropy", "softplus", "softshrink", "softsign", "square_error_cost",
    "swiglu", "swish", "tanh", "tanhshrink", "thresholded_relu", "triplet_margin_loss",
    "triplet_margin_with_distance_loss", "unfold", "upsample", "zeropad2d",
]  # fmt: skip

# What users call says what is wrong with its arguments; layers call the functions themselves.
_explain_all(globals(), _hint)


def __dir__() -> list[str]:
    return __all__
