"""What others call stays: names, arguments and defaults of every public module, as recorded."""

from tests import public_api


def test_the_public_interface_is_the_recorded_one():
    recorded = public_api.RECORD.read_text(encoding="utf-8").splitlines()
    now = public_api.lines()
    gone = sorted(set(recorded) - set(now))
    new = sorted(set(now) - set(recorded))
    assert not (gone or new), "\n".join(
        [*(f"- {line}" for line in gone), *(f"+ {line}" for line in new)]
        + ["meant? then record it: python -m tests.public_api"]
    )
