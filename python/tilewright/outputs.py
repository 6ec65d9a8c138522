"""Files that are written for users: what cannot be written is an error with its name."""
import os

from .trace import fail


def _refuse(path, why, help="give a file in a folder that can be written to"):
    fail("FileNotWritten", f"{os.fspath(path)}: {why}", help)


def write(path, text):
    """Writes a file, and gives its path."""
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        _refuse(path, error.strerror)
    return path


def make_folder(path):
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        _refuse(path, error.strerror, "give a folder that can be written to")


def check(path, source=None):
    """Refuses, before long work, a file that could not be written then, and the file that the work reads."""
    if source is not None and os.path.exists(path) and os.path.exists(source) and os.path.samefile(path, source):
        _refuse(path, "it is the file that is read, which would be lost", "give the result a file of its own")
    there = os.path.lexists(path)
    try:
        with open(path, "a", encoding="utf-8"):
            pass
    except OSError as error:
        _refuse(path, error.strerror)
    if not there:
        os.remove(path)
