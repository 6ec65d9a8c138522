"""`import tvm` in a process that a program for TileLang has started, where there is no TVM: a part of what `import tilelang`
gives."""
import sys

sys.modules.pop(__name__, None)
import tilelang  # noqa: E402, F401
