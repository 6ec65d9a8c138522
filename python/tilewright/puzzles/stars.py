"""Stars that were earned and hints that were given, in a file of the user's: puzzles.json in $XDG_STATE_HOME/tilewright, or in
~/.local/state/tilewright."""
import json
import os


def path():
    home = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(home, "tilewright", "puzzles.json")


def _read():
    try:
        with open(path(), encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write(**changed):
    """"" or why it is not kept."""
    try:
        os.makedirs(os.path.dirname(path()), exist_ok=True)
        beside = f"{path()}.{os.getpid()}"
        with open(beside, "w", encoding="utf-8") as file:
            json.dump({**_read(), **changed}, file)
        os.replace(beside, path())
    except OSError as error:
        return f"not kept: {error}"
    return ""


def _numbers(what):
    """{name of a puzzle: 1 to 3}."""
    found = _read().get(what)
    return {name: n for name, n in found.items() if n in (1, 2, 3)} if isinstance(found, dict) else {}


def earned():
    """{name of a puzzle: stars}."""
    return _numbers("stars")


def earn(name, stars):
    """Remembers the most that a puzzle was given; "" or why it cannot."""
    before = earned()
    return _write(stars={**before, name: stars}) if stars > before.get(name, 0) else ""


def hints_given(name):
    """How many hints of a puzzle the learner has seen."""
    return _numbers("hints").get(name, 0)


def give_hint(name, step):
    return _write(hints={**_numbers("hints"), name: step})


def folder():
    """Where the learner's files were written last; "" where nobody knows."""
    found = _read().get("folder")
    return found if isinstance(found, str) else ""


def remember_folder(folder):
    return _write(folder=os.path.abspath(folder))
