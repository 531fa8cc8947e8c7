"""``python -m optlab`` is the command ``optlab``."""

import sys

from optlab.cli import main

if __name__ == "__main__":
    sys.exit(main())
