"""Tests of the package: the installed one, or else that of the build tree."""
import importlib.util
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
if importlib.util.find_spec("tilewright") is None:
    sys.path.insert(0, str(ROOT / "build/release/python"))
