"""`import tile_kernels` as tilewright.kernels: by install(), or as a pytest plugin, `pytest -p tilewright.as_tile_kernels`."""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys

from .errors import TilewrightError

_NAME, _OURS = "tile_kernels", "tilewright.kernels"
# Modules that have another name here; what else they hold there is not for callers.
_PLACES = {"utils": "arguments", "quant.types": "arguments", "quant.common": "quant.casts"}


def _ours(name):
    rest = name[len(_NAME) + 1 :]
    return f"{_OURS}.{_PLACES.get(rest, rest)}" if rest else _OURS


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives the modules of the package under the other name: the same objects, imported when they are asked for."""

    def find_spec(self, name, path=None, target=None):
        if name != _NAME and not name.startswith(_NAME + "."):
            return None
        if importlib.util.find_spec(_ours(name)) is None:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        module = importlib.import_module(_ours(spec.name))
        self.spec_of_module = module.__spec__
        return module

    def exec_module(self, module):
        module.__spec__ = self.spec_of_module  # the import has put the other name's there
        _name_loaded()


def _name_loaded():
    """What is loaded already has the other name too: imported again it would hide functions of the same name."""
    for name, module in list(sys.modules.items()):
        if name == _OURS or name.startswith(_OURS + "."):
            sys.modules.setdefault(_NAME + name[len(_OURS) :], module)


def install(force=False):
    """From here on `import tile_kernels` gives tilewright.kernels."""
    found = sys.modules.get(_NAME)
    if found is not None and found.__name__ == _OURS:
        return
    if not force and (found is not None or importlib.util.find_spec(_NAME) is not None):
        raise TilewrightError(
            "tile_kernels itself is installed, and `import tile_kernels` gives it. install_as_tile_kernels(force=True) hides it "
            "in this process; to use both, import tilewright.kernels by its own name"
        )
    for name in [n for n in sys.modules if n == _NAME or n.startswith(_NAME + ".")]:
        del sys.modules[name]
    sys.meta_path.insert(0, _Finder())
    importlib.import_module(_NAME)


def pytest_addoption(parser):
    """The first that a plugin is asked: before other plugins and the conftest.py of the project are imported."""
    install()
