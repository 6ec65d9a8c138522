"""`import tilelang` in a process that a program for TileLang has started, where this folder is on PYTHONPATH: Tilewright's modules
take the place of this one."""
import os
import sys

sys.modules.pop(__name__, None)
try:
    from tilewright import children
except ImportError:  # the program found it by a path of its own
    package = os.path.abspath(__file__)
    for _ in range(5):
        package = os.path.dirname(package)
    sys.path.append(package)
    from tilewright import children

children.begin()
