"""Member loops: many runs of a small problem as one loop over steps and members.

A surface with its gradient, an update rule and what wrappers do after it are a few dozen operations
on numbers. `program` writes them down once for all members; `numpy_loop` runs them in blocks of
members that fit the cache, and `numba_loop` as machine code. Both give the bits of the single runs,
as every member goes through the same operations. `numbers` holds what is no state of a member:
settings that differ between members, and scalars that differ between steps.
"""

from optlab.plan.member_loops.execution import Execution, run_members
from optlab.plan.member_loops.numbers import Number, Numbers
from optlab.plan.member_loops.program import Program, ProgramBuilder, State
from optlab.plan.member_loops.symbols import Symbol, Tape

__all__ = [
    "Execution", "Number", "Numbers", "Program", "ProgramBuilder", "State", "Symbol", "Tape",
    "run_members",
]  # fmt: skip
