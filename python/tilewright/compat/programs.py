"""Programs to try: found in folders or named by a list, with how each is driven."""
import ast
import csv
import functools
import os
from dataclasses import dataclass, field
from pathlib import Path

# What stands in the top folder of a project; imports are looked up there.
_PROJECT_MARKS = (".git", "pyproject.toml", "setup.py", "setup.cfg", "ruff.toml")


@dataclass
class Program:
    """A file, and the columns that its list has for it."""

    name: str
    file: Path
    project: Path
    kind: str  # "tests", "script", "refused": a script whose pass is to be refused
    columns: dict = field(default_factory=dict)


def _is_test_file(file):
    if file.name.startswith("test_") or file.stem.endswith("_test"):
        return True
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (SyntaxError, UnicodeDecodeError, OSError):
        return False
    runs = any(isinstance(n, ast.If) and "__main__" in ast.dump(n.test) for n in tree.body)
    return not runs and any(isinstance(n, ast.FunctionDef) and n.name.startswith("test_") for n in tree.body)


def _project_of(file, otherwise):
    marked = (f for f in file.parents if any((f / mark).exists() for mark in _PROJECT_MARKS))
    return next(marked, otherwise)


def _text_of(file):
    try:
        return file.read_text(encoding="utf-8")
    except (UnicodeDecodeError, OSError):
        return ""


@functools.cache
def _says_tilelang(folder):
    """Whether a module of a package, or of a folder of modules, says tilelang."""
    return any("tilelang" in _text_of(f) for f in _files_of(folder))


def _uses_tilelang(file, text):
    """Whether a file says tilelang or tilewright, or imports a package of its project that says tilelang."""
    if "tilelang" in text or "tilewright" in text:
        return True
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return False
    names = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    names |= {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module and not n.level}
    project = _project_of(file, file.parent)
    for first in {n.partition(".")[0] for n in names}:
        for root in (project, project / "src", file.parent):
            if (root / first).is_dir() and _says_tilelang(root / first):
                return True
            if "tilelang" in _text_of(root / f"{first}.py"):
                return True
    return False


def _is_program(file):
    """Whether a file of a folder is more than a module of others: it uses tilelang, and is a test or has a main part."""
    text = _text_of(file)
    return (_is_test_file(file) or "__main__" in text) and _uses_tilelang(file, text)


def _files_of(folder):
    """The modules of a project: nothing that was installed, no folder that is hidden."""
    for at, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f != "site-packages" and not os.path.exists(os.path.join(at, f, "pyvenv.cfg")))
        yield from (Path(at, name) for name in sorted(names) if name.endswith(".py"))


def left_out(paths):
    """Files of the folders among the paths that use tilelang and are taken for modules of others: nothing in them says that they are run."""
    folders = [Path(path).resolve() for path in paths if Path(path).is_dir()]
    return [os.path.relpath(f, folder) for folder in folders for f in _files_of(folder) if not _is_program(f) and f.name != "__init__.py" and _uses_tilelang(f, _text_of(f))]


def of_paths(paths):
    """Files as they are; of folders the tests and the scripts that say tilelang."""
    found = []
    for path in map(Path, paths):
        path = path.resolve()
        files = [path] if path.is_file() else sorted(f for f in _files_of(path) if _is_program(f))
        top = path.parent if path.is_file() else path
        for file in files:
            kind = "tests" if _is_test_file(file) else "script"
            found.append(Program(os.path.relpath(file, top), file, _project_of(file, top), kind))
    return found


_KINDS = {"pytest": "tests", "pytest-driver": "tests", "host-check": "refused"}


def of_list(file, root):
    """The rows of a TSV file with a column `path`; `role` says how a row is driven where its name does not. Or one path a line."""
    root = Path(root).resolve()
    with open(file, encoding="utf-8", newline="") as text:
        lines = [line for line in text.read().splitlines() if line.strip()]
    has_columns = "path" in lines[0].split("\t") if lines else False
    rows = list(csv.DictReader(lines if has_columns else ["path", *lines], delimiter="\t"))
    found = []
    for row in rows:
        where = root / row["path"]
        kind = _KINDS.get(row.get("role", "")) or ("tests" if "role" not in row and _is_test_file(where) else "script")
        first = root / Path(row["path"]).parts[0]
        found.append(Program(row["path"], where, _project_of(where, first if first.is_dir() else root), kind, row))
    return found


def chosen(programs, only, where):
    """Those whose name has `only` in it and whose columns have one of the values of each COLUMN=VALUE,VALUE."""
    import re

    for condition in where:
        column, _, values = condition.partition("=")
        programs = [p for p in programs if p.columns.get(column) in values.split(",")]
    return [p for p in programs if re.search(only, p.name)]
