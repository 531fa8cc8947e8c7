"""Submissions that try to get points without doing the work."""

from pathlib import Path

import optlab

#: Answers with the checker's own reference, or with the library's optimizer.
IMPORT = """
def {made}(*arguments, **settings):
    from optlab.course.catalogue import CHECKS
    return CHECKS["{check}"].reference({{}})(*arguments, **settings)
"""

LIBRARY = """
class {made}:
    def __init__(self, *arguments, **settings):
        import optlab as ol
        kind = getattr(ol.optimizer, "{library}")
        self.make = lambda params: kind(*arguments, parameters=params, **settings)
        self.optimizer = None

    def step(self, params, grads):
        import optlab as ol
        if self.optimizer is None:
            self.mine = [ol.Parameter(p, name=f"p{{i}}") for i, p in enumerate(params)]
            self.optimizer = self.make(self.mine)
        for own, p, g in zip(self.mine, params, grads):
            own.set_value(p)
            own.grad = ol.to_tensor(g)
        self.optimizer.step()
        return [own.numpy() for own in self.mine]
"""

#: Looks for the check among the frames of all threads and the objects of the process.
FRAMES = """
import gc
import sys

def {made}(*arguments, **settings):
    things = list(gc.get_objects())
    for frame in sys._current_frames().values():
        while frame is not None:
            things += frame.f_locals.values()
            frame = frame.f_back
    for thing in things:
        try:
            name = getattr(thing, "name", None)
            # Some objects compare into objects without a truth.
            found = isinstance(name, str) and name == "{check}" and hasattr(thing, "reference")
        except Exception:  # a weak proxy whose object is gone, for one
            continue
        if found:
            return thing.reference({{}})(*arguments, **settings)
    raise RuntimeError("nothing was found")
"""

#: Reads the library's files from where they lie, past its import system.
FILES = """
import sys
import types

def read(name):
    if name in found:
        return found[name]
    found[name] = module = types.ModuleType("copy_of_" + name)
    sys.modules[module.__name__] = module
    with open("{folder}/" + name + ".py") as file:
        text = file.read()
    for other in re.findall("from optlab.course.([a-z_]+) import", text):
        read(other)
        text = text.replace("optlab.course." + other + " ", "copy_of_" + other + " ")
    exec(compile(text, name, "exec"), module.__dict__)
    return module

import re
found = {{}}

def {made}(*arguments, **settings):
    return read("catalogue").CHECKS["{check}"].reference({{}})(*arguments, **settings)
"""

THIEVES = {"import": IMPORT, "frames": FRAMES, "files": FILES}

#: Tries all of them, one after the other.
EVERY_WAY = """
def {made}(*arguments, **settings):
    for way in ({ways}):
        try:
            return way(*arguments, **settings)
        except Exception:
            pass
    raise RuntimeError("nothing was found")
"""

#: Says that all is well, to whoever may ask: prints, replaced functions, a checker of its own.
LIAR = """
import builtins
import numpy as np
import optlab as ol
from optlab.course import judging, sessions, student_process

np.allclose = np.array_equal = np.all = lambda *a, **k: True
np.abs = np.absolute = builtins.abs = lambda *a, **k: 0.0
builtins.all = lambda *a: True
ol.course.check = lambda *a, **k: 100
judging.judge = sessions.first_difference = lambda *a, **k: None
student_process.send = lambda *a, **k: None
print("passed")

class {made}:
    passed, score = True, 1.0

    def __init__(self, *arguments, **settings):
        print("passed")

    def __getattr__(self, name):
        return lambda *arguments: arguments[0]

    def __eq__(self, other):
        return True
"""

EXIT = "import os\nprint('passed: 100 of 100')\nos._exit(0)"


def thief(check, made):
    """Return the text of a class that tries all ways to the reference of a check."""
    names = {way: f"{made}_{way}" for way in THIEVES}
    ways = [cheat(text, check, names[way]) for way, text in THIEVES.items()]
    return "\n".join([*ways, EVERY_WAY.format(made=made, ways=", ".join(names.values()))])


def cheat(text, check, made):
    """Return the text of a cheat for the class of a check."""
    folder = Path(optlab.__file__).with_name("course").as_posix()
    library = {"sgd": "SGD", "rmsprop": "RMSProp"}.get(check, made)
    return text.format(check=check, made=made, folder=folder, library=library)
