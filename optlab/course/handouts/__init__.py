"""One page for each optimizer, as PDF: its formula, a picture of a run, and the code of its rule.

Formula and code are read from the library, and the run is made anew: nothing here can drift apart
from what the optimizer does. Needs the extra ``lab``.
"""

from optlab.course.handouts.page import save_handout, save_handouts
from optlab.course.handouts.subjects import SUBJECTS, Subject

__all__ = ["SUBJECTS", "Subject", "save_handout", "save_handouts"]
