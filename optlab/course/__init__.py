"""Assignments: checks of students' classes with feedback, and courses for nbgrader.

Two different things look alike here:

- **`check` is feedback.** It runs from the student's notebook, and a student who wants to can have
  it print anything. Nothing that it says is a mark.
- **The mark is made elsewhere.** A course of ``optlab course new`` has nbgrader rebuild the class
  from the submitted cells, in a process that the notebook's kernel has no hold of, and check it
  with other numbers (`optlab.course.grading`).

**Threat model.** A class may loop, exhaust memory, end the process, replace functions of NumPy and
of Python, write into the arrays that it is given, look through frames and objects, read files, start
programs, and import optlab or another library to do the work: it then fails, in bounded time, and the
parts that were right keep their points. It is code in Python by students of a course. It is not
machine code by an attacker: who must expect that (a forged pickle is not, for it is only loaded in the
bounded process) runs nbgrader in a container. Memory is bounded where the system has `resource`
(Linux, in part macOS); time is bounded everywhere.
"""

from optlab.course.checking import check as check
from optlab.course.checking import names as names
from optlab.course.report import Difference as Difference
from optlab.course.report import Report as Report

__all__ = ["Difference", "Report", "check", "names"]
