"""Records the learning rates of Paddle's schedules in schedules.json and schedules.npz.

Run it from the root of the repository, where PaddlePaddle 3.3.1 is installed:
``python -m tests.data.paddle.record_schedules``.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from tests.optimizer import schedules

HOW_TO = (
    "values[i] of a case is the rate after construction (i = 0) and after each step of its "
    "program: 'steps' times step(), step(epoch) for each of 'epochs' (null: step()), or "
    "step(metric) for each of 'metrics'. An 'expr' is a function of x or epoch. The arrays of all "
    "cases stand one after another in schedules.npz."
)


def main() -> None:
    """Run every schedule in Paddle and write both files."""
    import paddle

    if paddle.__version__ != "3.3.1":
        raise SystemExit(f"these are records of PaddlePaddle 3.3.1; this is {paddle.__version__}")
    cases = schedules.programs()
    values = [
        schedules.drive(schedules.make(paddle.optimizer.lr, case), case["program"])
        for case in cases
    ]
    folder = Path(__file__).parent
    lines = ",\n".join(
        json.dumps({**case, "count": len(rates)}) for case, rates in zip(cases, values, strict=True)
    )
    source = f"PaddlePaddle {paddle.__version__} (commit {paddle.version.commit}), CPU"
    head = f'"source": {json.dumps(source)},\n"how_to": {json.dumps(HOW_TO)}'
    (folder / "schedules.json").write_text(f'{{{head},\n"cases": [\n{lines}\n]}}\n')
    np.savez_compressed(folder / "schedules.npz", values=np.concatenate(values))


if __name__ == "__main__":
    main()
