"""Outputs that a call makes."""
import os
import subprocess
import sys


def test_a_call_without_tensors_has_its_outputs_where_the_engine_runs(tmp_path):
    """On a GPU that is PyTorch's memory, whether or not the program has imported PyTorch."""
    (tmp_path / "torch.py").write_text("class Tensor: pass\nint32 = 'int32'\ndef empty(shape, dtype, device): return f'on {device}'\n")
    code = "import sys; from tilewright import tensors; assert 'torch' not in sys.modules; print(*(tensors.empty(None, (2,), 'int32', e) for e in ('cpu', 'cuda')))"
    path = os.pathsep.join([str(tmp_path), *sys.path])
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})
    assert ran.stdout.split("]")[-1].strip().endswith("on cuda"), ran.stderr
    assert ran.stdout.startswith("["), ran.stdout  # NumPy's
