"""The engines that this machine has, and arrays where they read them."""
import pytest
from tilewright import _native

ENGINES = ["interpreter", "cpu", "simulator"] + ["cuda"] * (_native.device_count() > 0)
every_engine = pytest.mark.parametrize("engine", ENGINES)


def array_for(engine, array):
    """The NumPy array, or a tensor of the device with its elements."""
    return pytest.importorskip("torch").from_numpy(array).cuda() if engine == "cuda" else array
