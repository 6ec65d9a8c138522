"""Answers each line on stdin with the seconds that one call of PyTorch took: see torch_peer.h."""

import os
import sys
import time

import torch

torch.set_num_threads(len(os.sched_getaffinity(0)))
calls = {}


def prepare(kind, dtype, *sizes):
    """A call without arguments that does the work once."""
    dtype = getattr(torch, dtype)
    generator = torch.Generator().manual_seed(0)

    def random(*shape):
        return torch.randn(*shape, generator=generator).to(dtype)

    if kind == "matmul":
        m, n, k = sizes
        a, b, c = random(m, k), random(k, n), torch.empty(m, n, dtype=dtype)
        return lambda: torch.matmul(a, b, out=c)
    if kind == "attention":
        b, h, s, d = sizes
        q, k, v = (random(b, h, s, d) for _ in range(3))
        return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v)
    raise ValueError(kind)


def main():
    with torch.inference_mode():
        for line in sys.stdin:
            words = line.split()
            if words == ["version"]:
                print("torch", torch.__version__, flush=True)
                continue
            if line not in calls:
                calls[line] = prepare(words[0], words[1], *map(int, words[2:]))
                for _ in range(2):
                    calls[line]()
            start = time.perf_counter()
            calls[line]()
            print(time.perf_counter() - start, flush=True)


main()
