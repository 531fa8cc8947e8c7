"""Arguments with which functions and layers can be called, for tests that change one of them."""

from __future__ import annotations

from typing import Any

import numpy as np

_draw = np.random.default_rng(0)
X = _draw.normal(size=(2, 3, 4, 4)) * 2
ROWS = _draw.normal(size=(4, 3))
OTHER = _draw.normal(size=(4, 3))
THIRD = _draw.normal(size=(4, 3))
SHARES = _draw.uniform(0.1, 0.9, size=(4, 3))
SIGNS = np.array([1.0, -1.0, 1.0, -1.0])
CLASSES = np.array([0, 2, 1, 1])
CHANNELS = _draw.uniform(0.5, 1.5, size=3)
HEADS = _draw.normal(size=(2, 5, 2, 4))
SERIES = _draw.normal(size=(2, 3, 8))
POSITIVE = _draw.uniform(0.5, 1.5, size=(2, 3, 4, 4))
_more = np.random.default_rng(1)
MAPS, PLACES = _more.normal(size=(2, 2, 3)), _more.uniform(-0.9, 0.9, size=(2, 2, 3, 2))

#: Arguments of every function that has floating settings or arrays beside its input. All floats
#: and floating arrays among them are differentiated, one by one.
CALLS: dict[str, dict[str, Any]] = {
    "affine_grid": {"theta": MAPS, "out_shape": [2, 3, 4, 4]},
    "alpha_dropout": {"x": ROWS, "p": 0.5},
    "avg_pool1d": {"x": SERIES, "kernel_size": 2},
    "avg_pool2d": {"x": X, "kernel_size": 2, "divisor_override": 3.0},
    "avg_pool3d": {"x": X[None], "kernel_size": 2, "divisor_override": 3.0},
    "batch_norm": {
        "x": X, "running_mean": CHANNELS, "running_var": CHANNELS + 1, "weight": CHANNELS,
        "bias": CHANNELS, "training": False, "momentum": 0.9, "epsilon": 1e-2,
    },
    "bilinear": {
        "x1": ROWS, "x2": OTHER, "weight": _draw.normal(size=(2, 3, 3)), "bias": np.ones(2),
    },
    "binary_cross_entropy": {"input": SHARES, "label": SHARES[::-1].copy(), "weight": CHANNELS},
    "binary_cross_entropy_with_logits": {
        "logit": ROWS, "label": SHARES, "weight": CHANNELS, "pos_weight": CHANNELS,
    },
    "celu": {"x": X, "alpha": 1.5},
    "conv1d": {"x": SERIES, "weight": _draw.normal(size=(2, 3, 2)), "bias": np.ones(2)},
    "conv2d": {"x": X, "weight": _draw.normal(size=(2, 3, 2, 2)), "bias": np.ones(2)},
    "conv3d": {"x": X[None], "weight": _draw.normal(size=(2, 2, 1, 2, 2)), "bias": np.ones(2)},
    "conv1d_transpose": {"x": SERIES, "weight": _draw.normal(size=(3, 2, 2)), "bias": np.ones(2)},
    "conv2d_transpose": {"x": X, "weight": _draw.normal(size=(3, 2, 2, 2)), "bias": np.ones(2)},
    "conv3d_transpose": {
        "x": X[None], "weight": _draw.normal(size=(2, 2, 1, 2, 2)), "bias": np.ones(2),
    },
    "cosine_embedding_loss": {"input1": ROWS, "input2": OTHER, "label": SIGNS, "margin": 0.1},
    "cosine_similarity": {"x1": ROWS, "x2": OTHER, "eps": 1e-2},
    "cross_entropy": {
        "input": ROWS, "label": SHARES / SHARES.sum(1, keepdims=True), "soft_label": True,
        "label_smoothing": 0.1,
    },
    "dice_loss": {"input": SHARES, "label": CLASSES[:, None], "epsilon": 0.1},
    "dropout": {"x": ROWS, "p": 0.5},
    "dropout2d": {"x": X, "p": 0.5},
    "dropout3d": {"x": X[None], "p": 0.5},
    "elu": {"x": X, "alpha": 1.5},
    "embedding": {"x": CLASSES, "weight": ROWS},
    "gaussian_nll_loss": {"input": ROWS, "label": OTHER, "variance": SHARES, "epsilon": 1e-6},
    "grid_sample": {"x": X, "grid": PLACES},
    "group_norm": {
        "x": X, "num_groups": 1, "epsilon": 1e-2, "weight": CHANNELS, "bias": CHANNELS,
    },
    "gumbel_softmax": {"x": ROWS, "temperature": 1.5},
    "hardshrink": {"x": X, "threshold": 0.6},
    "hardsigmoid": {"x": X, "slope": 0.2, "offset": 0.4},
    "hardtanh": {"x": X, "min": -0.7, "max": 0.8},
    "hinge_embedding_loss": {"input": ROWS, "label": np.sign(OTHER), "margin": 1.5},
    "huber_loss": {"input": ROWS, "label": OTHER, "delta": 0.7},
    "instance_norm": {"x": X, "weight": CHANNELS, "bias": CHANNELS, "momentum": 0.9, "eps": 1e-2},
    "interpolate": {"x": X, "scale_factor": 2.0, "mode": "bilinear"},
    "kl_div": {"input": np.log(SHARES), "label": SHARES[::-1].copy()},
    "l1_loss": {"input": ROWS, "label": OTHER},
    "label_smooth": {"label": SHARES, "prior_dist": np.full((1, 3), 0.3), "epsilon": 0.2},
    "layer_norm": {
        "x": ROWS, "normalized_shape": 3, "weight": CHANNELS, "bias": CHANNELS, "epsilon": 1e-2,
    },
    "leaky_relu": {"x": X, "negative_slope": 0.1},
    "linear": {"x": ROWS, "weight": _draw.normal(size=(3, 2)), "bias": np.ones(2)},
    "local_response_norm": {"x": X, "size": 3, "alpha": 0.1, "beta": 0.7, "k": 1.2},
    "log_loss": {"input": SHARES[:, :1], "label": SHARES[:, 1:2], "epsilon": 1e-2},
    "lp_pool1d": {"x": np.abs(SERIES), "norm_type": 3.0, "kernel_size": 2},
    "lp_pool2d": {"x": POSITIVE, "norm_type": 3.0, "kernel_size": 2},
    "margin_ranking_loss": {
        "input": ROWS, "other": OTHER, "label": np.sign(THIRD), "margin": 0.3,
    },
    "max_unpool1d": {
        "x": SERIES[..., :4], "indices": np.arange(4) * 2 + np.zeros((2, 3, 1), int),
        "kernel_size": 2,
    },
    "mse_loss": {"input": ROWS, "label": OTHER},
    "multi_label_soft_margin_loss": {"input": ROWS, "label": (OTHER > 0) * 1.0, "weight": CHANNELS},
    "multi_margin_loss": {
        "input": ROWS, "label": CLASSES, "p": 2, "margin": 0.8, "weight": CHANNELS,
    },
    "nll_loss": {"input": np.log(SHARES), "label": CLASSES, "weight": CHANNELS},
    "normalize": {"x": POSITIVE, "p": 3.0, "epsilon": 1e-12},
    "npair_loss": {"anchor": ROWS, "positive": OTHER, "labels": CLASSES * 1.0, "l2_reg": 0.01},
    "pad": {"x": X, "pad": [1, 1, 1, 1], "value": 0.5},
    "pairwise_distance": {"x": ROWS, "y": OTHER, "p": 3.0, "epsilon": 1e-2},
    "poisson_nll_loss": {
        "input": SHARES, "label": SHARES[::-1] * 4, "log_input": False, "epsilon": 1e-2,
    },
    "prelu": {"x": X, "weight": CHANNELS},
    "rms_norm": {"input": ROWS, "normalized_shape": 3, "weight": CHANNELS, "eps": 1e-2},
    "scaled_dot_product_attention": {
        "query": HEADS, "key": HEADS[::-1].copy(), "value": HEADS + 1, "dropout_p": 0.2,
        "attn_mask": _draw.normal(size=(2, 2, 5, 5)), "scale": 0.4,
    },
    "selu": {"x": X, "scale": 1.1, "alpha": 1.6},
    "sigmoid_focal_loss": {
        "logit": ROWS, "label": (OTHER > 0) * 1.0, "normalizer": np.array([2.0]), "alpha": 0.3,
        "gamma": 1.5,
    },
    "smooth_l1_loss": {"input": ROWS, "label": OTHER, "delta": 0.7},
    "soft_margin_loss": {"input": ROWS, "label": np.sign(OTHER)},
    "softmax_with_cross_entropy": {
        "logits": ROWS, "label": SHARES / SHARES.sum(1, keepdims=True), "soft_label": True,
    },
    "softplus": {"x": X, "beta": 1.5, "threshold": 2.0},
    "softshrink": {"x": X, "threshold": 0.6},
    "square_error_cost": {"input": ROWS, "label": OTHER},
    "swiglu": {"x": ROWS, "y": OTHER},
    "thresholded_relu": {"x": X, "threshold": 0.6, "value": 0.3},
    "triplet_margin_loss": {
        "input": ROWS, "positive": OTHER, "negative": THIRD, "margin": 1.5, "p": 3.0,
        "epsilon": 1e-2,
    },
    "triplet_margin_with_distance_loss": {
        "input": ROWS, "positive": OTHER, "negative": THIRD, "margin": 1.5,
    },
    "upsample": {"x": X, "scale_factor": 2.0, "mode": "bilinear"},
}  # fmt: skip
#: Arguments and input of every layer with floating settings.
LAYERS: dict[str, tuple[dict[str, Any], tuple[Any, ...]]] = {
    "AlphaDropout": ({}, (ROWS,)),
    "AvgPool2D": ({"kernel_size": 2}, (X,)),
    "AvgPool3D": ({"kernel_size": 2}, (X[None],)),
    "BatchNorm": ({"num_channels": 3}, (X,)),
    "BatchNorm1D": ({"num_features": 3}, (ROWS,)),
    "BatchNorm2D": ({"num_features": 3}, (X,)),
    "BatchNorm3D": ({"num_features": 2}, (X[None],)),
    "CosineEmbeddingLoss": ({}, (ROWS, OTHER, SIGNS)),
    "CosineSimilarity": ({}, (ROWS, OTHER)),
    "CrossEntropyLoss": ({}, (ROWS, CLASSES)),
    "Dropout": ({}, (ROWS,)),
    "Dropout2D": ({}, (X,)),
    "Dropout3D": ({}, (X[None],)),
    "GRU": ({"input_size": 3, "hidden_size": 2, "num_layers": 2}, (ROWS[None],)),
    "GaussianNLLLoss": ({}, (ROWS, OTHER, SHARES)),
    "GroupNorm": ({"num_groups": 1, "num_channels": 3}, (X,)),
    "HingeEmbeddingLoss": ({}, (ROWS, np.sign(OTHER))),
    "HuberLoss": ({}, (ROWS, OTHER)),
    "InstanceNorm1D": ({"num_features": 3}, (SERIES,)),
    "InstanceNorm2D": ({"num_features": 3}, (X,)),
    "InstanceNorm3D": ({"num_features": 2}, (X[None],)),
    "LPPool1D": ({"kernel_size": 2}, (np.abs(SERIES),)),
    "LPPool2D": ({"kernel_size": 2}, (POSITIVE,)),
    "LSTM": ({"input_size": 3, "hidden_size": 2, "num_layers": 2}, (ROWS[None],)),
    "LayerNorm": ({"normalized_shape": 3}, (ROWS,)),
    "LocalResponseNorm": ({"size": 3}, (X,)),
    "MarginRankingLoss": ({}, (ROWS, OTHER, np.sign(THIRD))),
    "MultiHeadAttention": ({"embed_dim": 4, "num_heads": 2}, (X[0],)),
    "MultiMarginLoss": ({}, (ROWS, CLASSES)),
    "Pad1D": ({"padding": 1}, (SERIES,)),
    "Pad2D": ({"padding": 1}, (X,)),
    "Pad3D": ({"padding": 1}, (X[None],)),
    "PairwiseDistance": ({}, (ROWS, OTHER)),
    "PoissonNLLLoss": ({"log_input": False}, (SHARES, SHARES[::-1] * 4)),
    "RMSNorm": ({"normalized_shape": 3}, (ROWS,)),
    "SimpleRNN": ({"input_size": 3, "hidden_size": 2, "num_layers": 2}, (ROWS[None],)),
    "SmoothL1Loss": ({}, (ROWS, OTHER)),
    "Transformer": (
        {"d_model": 4, "nhead": 2, "num_encoder_layers": 1, "num_decoder_layers": 1,
         "dim_feedforward": 4},
        (X[0], X[1]),
    ),
    "TransformerDecoderLayer": ({"d_model": 4, "nhead": 2, "dim_feedforward": 4}, (X[0], X[1])),
    "TransformerEncoderLayer": ({"d_model": 4, "nhead": 2, "dim_feedforward": 4}, (X[0],)),
    "TripletMarginLoss": ({}, (ROWS, OTHER, THIRD)),
    "TripletMarginWithDistanceLoss": ({}, (ROWS, OTHER, THIRD)),
}  # fmt: skip
