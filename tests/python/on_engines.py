"""Programs with NumPy arrays on the engines that need no device."""
import pytest
import tilewright as tw

ENGINES = ["interpreter", "cpu", "simulator"]
every_engine = pytest.mark.parametrize("engine", ENGINES)
two_engines = pytest.mark.parametrize("engine", ["interpreter", "simulator"])


def run(program, engine, *arrays):
    tw.compile(program, engine=engine)(*arrays)


def run_on_hopper(program, engine, *arrays):
    """In the simulator of the GPU that has what the program names."""
    tw.compile(program, **({"target": "simulator -arch=sm_90a"} if engine == "simulator" else {"engine": engine}))(*arrays)
