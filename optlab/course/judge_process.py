"""The process that judges: a request and a class on its input, a report on its output."""

from __future__ import annotations

import json
import sys


def main() -> None:
    """Read a request, check the class, write the report."""
    from optlab.course.catalogue import find
    from optlab.course.judging import judge
    from optlab.course.students import StudentTarget

    request = json.loads(sys.stdin.buffer.readline())
    pickled = sys.stdin.buffer.read()
    with StudentTarget(pickled, request["cells"], request["class_name"] or "") as target:
        report = judge(find(request["name"]), target, request["seed"], request["hidden"])
    sys.stdout.write(json.dumps(report.to_dict()))


if __name__ == "__main__":
    own, *others = json.loads(sys.argv[1])
    sys.path.insert(0, own)  # this optlab, should another be installed beside it
    sys.path += [path for path in others if path not in sys.path]
    main()
