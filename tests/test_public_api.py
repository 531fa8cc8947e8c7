"""What others call stays: names, arguments and defaults of every public module, as recorded."""

from tests import public_api


def test_the_public_interface_is_the_recorded_one():
    recorded = public_api.RECORD.read_text(encoding="utf-8").splitlines()
    now = public_api.lines()
    changes = [f"- {line}" for line in sorted(set(recorded) - set(now))]
    changes += [f"+ {line}" for line in sorted(set(now) - set(recorded))]
    assert not changes, "\n".join([*changes, "meant? then: python -m tests.public_api"])
