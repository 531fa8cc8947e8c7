"""Cases of attention."""

from __future__ import annotations

from typing import Any

import numpy as np

import optlab as ol
from tests.nn.cases.table import numbers, put

F = ol.nn.functional

ALLOWED = np.array(
    [[True, False, True, True], [True, True, False, False], [False, True, True, True]]
)
NOWHERE = ALLOWED & np.array([[True], [False], [True]])
QUERY, KEY, VALUE = numbers(2, 3, 2, 2), numbers(2, 4, 2, 2), numbers(2, 4, 2, 3)


def _theirs(torch: Any, q: Any, k: Any, v: Any, mask: Any = None, **options: Any) -> Any:
    if isinstance(mask, np.ndarray):
        mask = torch.tensor(mask if mask.dtype == bool else mask.astype(str(q.dtype)[6:]))
    turned = [x.transpose(-2, -3) for x in (q, k, v)]
    attended = torch.nn.functional.scaled_dot_product_attention(*turned, mask, **options)
    return attended.transpose(-2, -3)


def _attention(label: str, *args: np.ndarray, mask: Any = None, **options: Any) -> None:
    put(
        f"attention {label}",
        lambda q, k, v, m=mask: F.scaled_dot_product_attention(q, k, v, m, **options),
        *args,
        torch=lambda torch, q, k, v, m=mask: _theirs(torch, q, k, v, m, **options),
    )


_attention("to everything", QUERY, KEY, VALUE)
_attention("of one sentence", QUERY[0], KEY[0], VALUE[0])
_attention("to the past", QUERY, QUERY[..., ::-1], VALUE[:, :3], is_causal=True)
_attention("with a scale", QUERY, KEY, VALUE, scale=0.3)
_attention("with truth values", QUERY, KEY, VALUE, mask=ALLOWED)
_attention("with numbers", QUERY, KEY, VALUE, numbers(2, 1, 3, 4))
_attention("with numbers a head", QUERY, KEY, VALUE, numbers(2, 1, 4))
_attention("that may look nowhere", QUERY, KEY, VALUE, mask=NOWHERE)
_attention("with -infinity", QUERY, KEY, VALUE, mask=np.where(ALLOWED, 0.25, -np.inf)[None, None])
put(
    "attention of groups of heads",
    F.scaled_dot_product_attention,
    numbers(1, 3, 4, 2),
    numbers(1, 3, 2, 2),
    numbers(1, 3, 2, 1),
    torch=lambda torch, q, k, v: _theirs(torch, q, k, v, enable_gqa=True),
)


def _dropped(q: Any, k: Any, v: Any) -> Any:
    ol.seed(4)
    return F.scaled_dot_product_attention(q, k, v, dropout_p=0.4)


put("attention with dropout", _dropped, QUERY, KEY, VALUE)
