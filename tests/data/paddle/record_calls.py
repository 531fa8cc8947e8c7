"""Records in calls.json what Paddle's functions return for the calls of `tests.paddle.calls`.

Run it from the root of the repository, where PaddlePaddle 3.3.1 is installed:
``python -m tests.data.paddle.record_calls``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from tests.paddle import calls


def described(value: Any, tensor: type) -> Any:
    """Return a result as what JSON holds: of a Tensor its dtype, shape and elements."""
    if isinstance(value, tensor):
        array = np.asarray(value.numpy())
        elements = [round(x, 10) for x in array.astype("float64").ravel().tolist()]
        return {"dtype": str(array.dtype), "shape": list(array.shape), "elements": elements}
    if isinstance(value, (list, tuple)):
        return [described(one, tensor) for one in value]
    return value


def main() -> None:
    """Run every call in Paddle and write the file; what Paddle refuses is left out."""
    import paddle

    if paddle.__version__ != "3.3.1":
        raise SystemExit(f"these are records of PaddlePaddle 3.3.1; this is {paddle.__version__}")
    lines = []
    for call in calls.calls():
        try:
            found = described(eval(call, calls.tensors(paddle)), paddle.Tensor)
        except Exception:  # noqa: BLE001 - Paddle raises many kinds
            continue
        lines.append(f"{json.dumps(call)}: {json.dumps(found)}")
    source = f"PaddlePaddle {paddle.__version__} (commit {paddle.version.commit}), CPU"
    text = ",\n".join(lines)
    path = Path(__file__).with_name("calls.json")
    path.write_text(f'{{"source": {json.dumps(source)},\n"calls": {{\n{text}\n}}}}\n')


if __name__ == "__main__":
    main()
