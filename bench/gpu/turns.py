"""Contestants that take turns on a GPU: 256 MB written before each call, medians of the times between two events (docs/measuring.md).
The GPU is kept busy until the call stands behind the first event: what the host takes for it is not counted."""

import statistics
import time

FLUSH_BYTES = 256 << 20
# About 1.1 ms: calls of PyTorch's operators and ours take 0.02 to 0.3 ms of the host, and up to three times as long behind a second
# of others.
_BUSY_CLOCKS = 2_000_000


def medians(contestants, flush, seconds=0.5, most=15):
    """{name: microseconds} of {name: a call without arguments}, each called once before."""
    import torch

    found = {name: [] for name in contestants}
    for f in contestants.values():
        f()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(most):
        for name, f in contestants.items():
            first, last = (torch.cuda.Event(enable_timing=True) for _ in "ab")
            torch.cuda._sleep(_BUSY_CLOCKS)
            flush.zero_()
            first.record()
            f()
            last.record()
            last.synchronize()
            found[name].append(first.elapsed_time(last) * 1000)
        if time.perf_counter() - start > seconds:
            break
    return {name: round(statistics.median(t), 2) for name, t in found.items()}
