"""``python -m optlab.parallel -n 4 train.py`` runs a program on ranks of MPI."""

import sys

from optlab.parallel.launcher import main

if __name__ == "__main__":
    sys.exit(main())
