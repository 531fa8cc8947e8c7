"""A watch for tests that say within how many seconds something ends."""

import threading
import time

#: A nap, and the most that counts of it.
_NAP, _MOST = 0.02, 0.1


class Stopwatch:
    """Seconds inside a `with` statement, without those that this process waited for a processor.

    It counts the naps of a thread of its own: one that took longer than it should, because other
    programs had the processors, counts as a tenth of a second at most. What hangs by itself is
    counted in full.
    """

    def __init__(self):
        self.seconds = 0.0

    def __enter__(self):
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._count, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._over.set()
        self._thread.join()

    def _count(self):
        last = time.monotonic()
        while not self._over.wait(_NAP):
            now = time.monotonic()
            self.seconds += min(now - last, _MOST)
            last = now
