"""Notes of the reference on rules: conventions at kinks, formulas, and sources."""

from __future__ import annotations

_LINALG = "np.linalg."

#: Conventions from the docstrings of files other than `rules.elementwise`: the case, the
#: convention, the file in ``rules/``, and the functions.
ELSEWHERE: list[tuple[str, str, str, tuple[str, ...]]] = [
    (
        "norms at the zero vector",
        "0, the middle of the slopes; the second derivative is 0 too",
        "linalg/norms",
        ("np.linalg.norm", "np.linalg.vector_norm", "np.linalg.matrix_norm", "euclidean_norm"),
    ),
    (
        "norms, elements that are 0 or tie for the maximum",
        "0; ties share equally",
        "linalg/norms",
        ("np.linalg.norm", "np.linalg.vector_norm", "np.linalg.matrix_norm"),
    ),
    (
        "`max`, `min` with ties",
        "shared equally among the elements that tie",
        "reductions/aggregates",
        ("np.max", "np.min", "np.amax", "np.amin", "np.nanmax", "np.nanmin", "np.ptp"),
    ),
    (
        "`std` where all numbers are equal",
        "0",
        "reductions/aggregates",
        ("np.std", "np.nanstd"),
    ),
    (
        "elements that `where=` leaves out",
        "0, also where they are NaN or infinite",
        "reductions/aggregates",
        ("np.sum", "np.prod", "np.mean", "np.std", "np.var", "np.max", "np.min", "np.amax",
         "np.amin"),
    ),
    (
        "`logaddexp.reduce` of nothing but -inf",
        "0",
        "reductions/aggregates",
        ("np.logaddexp.reduce",),
    ),
    (
        "`median`, `quantile`",
        "to the neighbours, in the shares of the interpolation",
        "reductions/order_statistics",
        ("np.median", "np.quantile", "np.percentile", "np.nanmedian", "np.nanquantile",
         "np.nanpercentile"),
    ),
    (
        "`median`, `quantile` with ties",
        "in the order in which they come",
        "reductions/order_statistics",
        ("np.median", "np.quantile", "np.percentile", "np.nanmedian", "np.nanquantile",
         "np.nanpercentile"),
    ),
    (
        "`sort`, `partition` with ties",
        "in the order in which they come",
        "manipulation/sorting",
        ("np.sort", "np.partition"),
    ),
    (
        "repeated eigenvalues, singular values",
        "0 for an arbitrary rotation of vectors",
        "linalg/decompositions",
        tuple(
            _LINALG + name
            for name in ("svd", "svdvals", "eig", "eigh", "eigvals", "eigvalsh", "pinv")
        ),
    ),
    (
        "symmetric input of `eigh`",
        "shared by both triangles",
        "linalg/decompositions",
        ("np.linalg.eigh", "np.linalg.eigvalsh"),
    ),
    (
        "a branch that `np.where` did not take",
        "0, also through an infinite slope",
        "guarded",
        ("np.where",),
    ),
]  # fmt: skip

_REPEATED = (
    "Where two of them are equal their 1 / gap is taken as 0: right for functions of the values "
    "(a sum, a norm), and no answer to a question about single vectors, which are arbitrary there. "
    "Nearly equal ones give large gradients."
)
_EXTREME = (
    (
        "g goes to the elements that reach the extreme; n of them that tie get g / n each, a point "
        "in the middle of the subdifferential."
    ),
    "Rockafellar, Convex Analysis (1970), part V.",
    "",
)
_INVERSE = "Giles, Collected matrix derivative results (2008)."

#: The formula, where it is derived, and a warning. In formulas ' is the transpose, * element-wise.
FORMULAS: dict[str, tuple[str, str, str]] = {
    "np.linalg.svd": (
        (
            "x = U diag(s) V': the gradient is U diag(g1) V' + U (F * (U'g0 - g0'U)) diag(s) V' + "
            "U diag(s) (F * (V'g2' - g2 V)) V' with F_ij = 1 / (s_j^2 - s_i^2), and what leads "
            "out of the columns of U and V, over s."
        ),
        "Townsend, Differentiating the singular value decomposition (2016).",
        f"Beware of repeated singular values. {_REPEATED}",
    ),
    "np.linalg.eigh": (
        (
            "x = V diag(w) V': the gradient is V (diag(g0) + F * (V'g1)) V', made symmetric, with "
            "F_ij = 1 / (w_j - w_i)."
        ),
        "Giles, Collected matrix derivative results (2008).",
        f"Beware of repeated eigenvalues. {_REPEATED}",
    ),
    "np.linalg.qr": (
        (
            "x = Q R: the gradient is (g0 + Q M) inv(R)', where M is symmetric and has the lower "
            "triangle of R g1' - g0' Q."
        ),
        (
            "Walter and Lehmann, Algorithmic differentiation of linear algebra functions (2012); "
            "Seeger et al., Auto-differentiating linear algebra (2017)."
        ),
        "",
    ),
    "np.linalg.inv": ("From d inv(x) = -inv(x) dx inv(x): the gradient is -y' g y'.", _INVERSE, ""),
    "np.linalg.det": (
        (
            "Jacobi's formula: the gradient is g times the cofactors, which are det(x) inv(x)' "
            "where x has an inverse and right where it has none."
        ),
        _INVERSE,
        "",
    ),
    "np.max": _EXTREME,
    "np.amax": _EXTREME,
    "np.min": _EXTREME,
    "np.amin": _EXTREME,
}
