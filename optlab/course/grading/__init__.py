"""Marks, made outside of the student's kernel: preprocessors for ``nbgrader autograde``.

nbgrader runs a submitted notebook and reads the points of a cell from its output. The output is
made by the student's kernel, in which every function can be replaced. Here the cells that call
``ol.course.check`` are not run in that kernel. `GradeChecks` reads from the cell (nbgrader has put
the teacher's text back into it) what is checked, rebuilds the class from the other cells of the
submission in a clean, bounded process, and writes the points and the report into the cell.
`RunNotebook` runs the rest for its pictures, and goes on where a cell has ended the kernel.
`LeaveOutHiddenTests` keeps the hidden tests out of the pages of feedback.
"""
