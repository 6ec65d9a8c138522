"""python -m tilewright: the command `tilewright`."""
import sys

from .command import main

if __name__ == "__main__":
    sys.exit(main())
