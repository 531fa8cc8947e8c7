"""Assignments: checks of students' classes with feedback, and courses for nbgrader.

Two different things look alike here:

- **`check` is feedback.** It runs from the student's notebook, and a student who wants to can have
  it print anything. Nothing that it says is a mark.
- **The mark is made elsewhere.** A course of ``optlab course new`` has nbgrader rebuild the class
  from the submitted cells, in a process that the notebook's kernel has no hold of, and check it
  with other numbers (`optlab.course.grading`).

**Threat model.** A class may loop, exhaust memory, end the process, replace functions of NumPy
and of Python, write into the arrays that it is given, look through frames and objects, read files,
start programs, and import optlab or another library to do the work: it then fails, in bounded time,
and the parts that were right keep their points. It is code in Python by students of a course. It is
not an attack by machine code: who must expect that runs nbgrader in a container, as for any
submitted notebook. Memory is bounded where the system has `resource` (Linux, in part macOS); time
is bounded everywhere.
"""

from optlab.backend.namespaces import set_module as _set_module
from optlab.course.checking import check, names
from optlab.course.racing import racer
from optlab.course.report import Difference, Report
from optlab.course.variants import Variant, variant

__all__ = ["Difference", "Report", "Variant", "check", "names", "racer", "variant"]

_set_module(__name__)


def __dir__() -> list[str]:
    return __all__
