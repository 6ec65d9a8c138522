"""tilelang.tools.Analyzer: what a program computes and moves, and how long that takes at least."""
import json

_GPU = "sm_90a"


class AnalysisResult:
    """total_flops of its products, total_global_bytes of its copies, and the time that the device's limits leave."""

    def __init__(self, total_flops, total_global_bytes, estimated_time, expected_tflops, expected_bandwidth_GBps):
        self.total_flops, self.total_global_bytes, self.estimated_time = total_flops, total_global_bytes, estimated_time
        self.expected_tflops, self.expected_bandwidth_GBps = expected_tflops, expected_bandwidth_GBps

    def __repr__(self):
        return f"AnalysisResult({', '.join(f'{k}={v}' for k, v in vars(self).items())})"


class Analyzer:
    """Analyzer.analysis(program), or Analyzer(program, device).ir_pass().calculate()."""

    def __init__(self, fn, device=None):
        self.fn, self.device, self.block_counts = fn, device, {}

    def ir_pass(self):
        return self  # nothing is kept from an earlier count

    def calculate(self):
        return self.analysis(self.fn, self.device)

    @staticmethod
    def analysis(fn, device=None):
        """The cost of a program whose sizes are known, by what Kernel.explain says of it on the GPU that `device` is."""
        facts = json.loads(fn.program.explain(device.machine.arch if getattr(device, "machine", None) else _GPU, True, {}))
        operations = [o for launch in facts["launches"] for o in launch["operations"]]
        flops = sum(o["executions"] * o["flops"] for o in operations if o["operation"] == "gemm")
        moved = sum(o["executions"] * o["bytes"] for o in operations if o["operation"] in ("copy", "im2col"))
        compute, memory = facts["compute_floor_us"] * 1e-6, facts["memory_floor_us"] * 1e-6
        return AnalysisResult(flops, moved, max(compute, memory), flops / compute / 1e12 if compute else 0.0,
                              facts["tensor_bytes"] / memory / 1e9 if memory else 0.0)  # fmt: skip
