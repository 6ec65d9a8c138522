"""Programs of many families with shapes, tiles, stages and threads that nobody chose, for bench/gpu/examples.py to time.

    python bench/gpu/random_programs.py FOLDER [--number 60] [--seed 1] [--family TEXT]... [--small]
    python bench/gpu/examples.py FOLDER

Writes one file a program: a kernel in TileLang's language and, under `__main__`, a call with random numbers. Sizes of calls keep an
H200 busy for some 20 to 500 us. Draws that no 227 KiB of shared memory hold are drawn again."""

import argparse
import os
import random
import textwrap

_HEAD = """import torch
import tilelang
import tilelang.language as T


"""
_SHARED_BYTES = 220 << 10


class Draw:
    """Random choices of one program. Tiles are as drawn; where all else is to be small, sizes of calls are a few tiles."""

    def __init__(self, seed, small=False):
        self.of, self.small = random.Random(seed), small

    def __call__(self, *choices):
        return self.of.choice(choices)

    def size(self, least, most, step):
        size = self.of.randrange(least, most + 1, step)
        return step * (1 + size // step % (256 // step + 2)) if self.small else size

    def long(self, *choices):
        size = self.of.choice(choices)
        return max(1, size // 32) if self.small else size


def _program(body, call):
    return _HEAD + textwrap.dedent(body).strip() + '\n\n\nif __name__ == "__main__":\n' + textwrap.indent(textwrap.dedent(call).strip(), "    ") + "\n"


def _fits(count):
    return count <= _SHARED_BYTES


def gemm_epilogue(d):
    bm, bn, bk = d(64, 96, 128, 192, 256), d(64, 96, 128, 160, 256), d(32, 64, 128)
    stages, threads, dtype = d(2, 3, 4), d(128, 256, 384), d("float16", "bfloat16")
    M, N, K = d.size(512, 6144, 8), d.size(512, 6144, 8), d.size(512, 4096, 64)
    if not _fits((bm + bn) * bk * 2 * stages) or bm * bn / threads > 200:
        return None
    act = d("T.max(v, 0)", "v / (1 + T.exp(-v))", "v * T.sigmoid(1.702 * v)", "v * v")
    out = d(dtype, "float32")
    residual = d(True, False)
    more = f'R: T.Tensor((M, N), "{dtype}"), ' if residual else ""
    add = " + R[by * {0} + i, bx * {1} + j]".format(bm, bn) if residual else ""
    return _program(
        f"""
        M, N, K = {M}, {N}, {K}


        @T.prim_func
        def main(A: T.Tensor((M, K), "{dtype}"), B: T.Tensor((N, K), "{dtype}"), bias: T.Tensor((N,), "{dtype}"), {more}C: T.Tensor((M, N), "{out}")):
            with T.Kernel(T.ceildiv(N, {bn}), T.ceildiv(M, {bm}), threads={threads}) as (bx, by):
                As = T.alloc_shared(({bm}, {bk}), "{dtype}")
                Bs = T.alloc_shared(({bn}, {bk}), "{dtype}")
                c = T.alloc_fragment(({bm}, {bn}), "float32")
                T.clear(c)
                for ko in T.Pipelined(T.ceildiv(K, {bk}), num_stages={stages}):
                    T.copy(A[by * {bm}, ko * {bk}], As)
                    T.copy(B[bx * {bn}, ko * {bk}], Bs)
                    T.gemm(As, Bs, c, transpose_B=True)
                for i, j in T.Parallel({bm}, {bn}):
                    v = c[i, j] + bias[bx * {bn} + j]{add}
                    c[i, j] = {act}
                T.copy(c, C[by * {bm}, bx * {bn}])
        """,
        f"""
        kernel = tilelang.compile(main)
        t = torch.{dtype}
        kernel(torch.randn(M, K, device="cuda").to(t), torch.randn(N, K, device="cuda").to(t), torch.randn(N, device="cuda").to(t),
               {'torch.randn(M, N, device="cuda").to(t), ' if residual else ''}torch.empty(M, N, device="cuda", dtype=torch.{out}))
        """,
    )


def attention(d):
    dim, bm, bn = d(64, 80, 96, 128, 192), d(64, 128, 192), d(32, 48, 64, 96, 128, 160)
    threads, stages, causal, dtype = d(128, 256, 384), d(1, 2, 3), d(True, False), d("float16", "bfloat16")
    if bm % (threads // 128 * 64) or not _fits((bm * dim + 2 * stages * bn * dim) * 2) or bm * (dim + bn) / threads > 200:
        return None
    heads, group, batch, seq = 8 if d.small else 16, d(1, 1, 4, 8), d.long(1, 2), d.long(1024, 2048, 3000, 4096)
    limit = f"T.min(T.ceildiv(S, {bn}), T.ceildiv((bx + 1) * {bm}, {bn}))" if causal else f"T.ceildiv(S, {bn})"
    mask = f"(bx * {bm} + i >= k * {bn} + j) & (k * {bn} + j < S)" if causal else f"k * {bn} + j < S"
    return _program(
        f"""
        B, H, S, D, G = {batch}, {heads}, {seq}, {dim}, {group}
        scale = D ** -0.5 * 1.44269504


        @T.prim_func
        def main(Q: T.Tensor((B, S, H, D), "{dtype}"), K: T.Tensor((B, S, H // G, D), "{dtype}"), V: T.Tensor((B, S, H // G, D), "{dtype}"),
                 O: T.Tensor((B, S, H, D), "{dtype}")):
            with T.Kernel(T.ceildiv(S, {bm}), H, B, threads={threads}) as (bx, by, bz):
                q = T.alloc_shared(({bm}, D), "{dtype}")
                kk = T.alloc_shared(({bn}, D), "{dtype}")
                vv = T.alloc_shared(({bn}, D), "{dtype}")
                s = T.alloc_fragment(({bm}, {bn}), "float32")
                p = T.alloc_fragment(({bm}, {bn}), "{dtype}")
                o = T.alloc_fragment(({bm}, D), "float32")
                m = T.alloc_fragment(({bm},), "float32")
                m0 = T.alloc_fragment(({bm},), "float32")
                r = T.alloc_fragment(({bm},), "float32")
                l = T.alloc_fragment(({bm},), "float32")
                lsum = T.alloc_fragment(({bm},), "float32")
                T.copy(Q[bz, bx * {bm} : (bx + 1) * {bm}, by, :], q)
                T.fill(o, 0)
                T.fill(l, 0)
                T.fill(m, -T.infinity("float32"))
                for k in T.Pipelined({limit}, num_stages={stages}):
                    T.copy(K[bz, k * {bn} : (k + 1) * {bn}, by // G, :], kk)
                    for i, j in T.Parallel({bm}, {bn}):
                        s[i, j] = T.if_then_else({mask}, 0, -T.infinity("float32"))
                    T.gemm(q, kk, s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                    T.copy(V[bz, k * {bn} : (k + 1) * {bn}, by // G, :], vv)
                    T.copy(m, m0)
                    T.reduce_max(s, m, dim=1, clear=False)
                    for i in T.Parallel({bm}):
                        m[i] = T.max(m[i], m0[i])
                        r[i] = T.exp2(m0[i] * scale - m[i] * scale)
                    for i, j in T.Parallel({bm}, {bn}):
                        s[i, j] = T.exp2(s[i, j] * scale - m[i] * scale)
                    T.reduce_sum(s, lsum, dim=1)
                    for i in T.Parallel({bm}):
                        l[i] = l[i] * r[i] + lsum[i]
                    T.copy(s, p)
                    for i, j in T.Parallel({bm}, D):
                        o[i, j] *= r[i]
                    T.gemm(p, vv, o, policy=T.GemmWarpPolicy.FullRow)
                for i, j in T.Parallel({bm}, D):
                    o[i, j] /= l[i]
                T.copy(o, O[bz, bx * {bm} : (bx + 1) * {bm}, by, :])
        """,
        f"""
        kernel = tilelang.compile(main)
        t = torch.{dtype}
        kernel(torch.randn(B, S, H, D, device="cuda").to(t), torch.randn(B, S, H // G, D, device="cuda").to(t),
               torch.randn(B, S, H // G, D, device="cuda").to(t), torch.empty(B, S, H, D, device="cuda", dtype=t))
        """,
    )


def dequantized(d):
    bm, bn, bk = d(16, 32, 64, 128), d(64, 128, 256), d(64, 128)
    threads, stages, group = d(128, 256), d(2, 3), d(64, 128)
    bits = d(4, 8)
    M, N, K = d.long(16, 64, 256, 2048), d.size(1024, 8192, 64), d.size(1024, 8192, 128)
    if bm * bn / threads > 160 or group % bk and bk % group:
        return None
    if bits == 4:
        value = f'(((W[bx * {bn} + i, (ko * {bk} + j) // 2] >> T.cast((j % 2) * 4, "uint8")) & T.cast(15, "uint8")).astype("float16") - T.float16(8))'
        packed, shape = 2, "(N, K // 2)"
    else:
        value, packed, shape = f'(W[bx * {bn} + i, ko * {bk} + j].astype("float16") - T.float16(128))', 1, "(N, K)"
    value = value.replace(f"W[bx * {bn} + i, (ko * {bk} + j) // 2]", "ws[i, j // 2]").replace(f"W[bx * {bn} + i, ko * {bk} + j]", "ws[i, j]")
    return _program(
        f"""
        M, N, K = {M}, {N}, {K}


        @T.prim_func
        def main(A: T.Tensor((M, K), "float16"), W: T.Tensor({shape}, "uint8"), S: T.Tensor((N, K // {group}), "float16"), C: T.Tensor((M, N), "float16")):
            with T.Kernel(T.ceildiv(N, {bn}), T.ceildiv(M, {bm}), threads={threads}) as (bx, by):
                As = T.alloc_shared(({bm}, {bk}), "float16")
                ws = T.alloc_shared(({bn}, {bk // packed}), "uint8")
                Bs = T.alloc_shared(({bn}, {bk}), "float16")
                c = T.alloc_fragment(({bm}, {bn}), "float32")
                T.clear(c)
                for ko in T.Pipelined(T.ceildiv(K, {bk}), num_stages={stages}):
                    T.copy(A[by * {bm}, ko * {bk}], As)
                    T.copy(W[bx * {bn}, ko * {bk // packed}], ws)
                    for i, j in T.Parallel({bn}, {bk}):
                        Bs[i, j] = {value} * S[bx * {bn} + i, (ko * {bk} + j) // {group}]
                    T.gemm(As, Bs, c, transpose_B=True)
                T.copy(c, C[by * {bm}, bx * {bn}])
        """,
        f"""
        kernel = tilelang.compile(main)
        kernel(torch.randn(M, K, device="cuda").half(), torch.randint(0, 256, {shape}, device="cuda", dtype=torch.uint8),
               torch.rand(N, K // {group}, device="cuda").half() / 8, torch.empty(M, N, device="cuda", dtype=torch.float16))
        """,
    )


def rows(d):
    columns, rows_, threads = d(512, 1000, 1024, 2048, 3072, 4096, 5120, 8192), d(1, 2, 4, 8, 16), d(64, 128, 256, 512)
    dtype = d("float16", "bfloat16", "float32")
    if rows_ * columns / threads > 96:
        return None
    M = 3 * rows_ - 1 if d.small else max(4096, (1 << 26) // columns // 8 * 8)
    kind = d("softmax", "rms", "layer", "absmax")
    lines = {
        "softmax": """
                T.reduce_max(x, a, dim=1)
                for i, j in T.Parallel(R, N):
                    x[i, j] = T.exp(x[i, j] - a[i])
                T.reduce_sum(x, b, dim=1)
                for i, j in T.Parallel(R, N):
                    x[i, j] = x[i, j] / b[i]""",
        "rms": """
                for i, j in T.Parallel(R, N):
                    y[i, j] = x[i, j] * x[i, j]
                T.reduce_sum(y, a, dim=1)
                for i in T.Parallel(R):
                    b[i] = T.rsqrt(a[i] / N + 1e-6)
                for i, j in T.Parallel(R, N):
                    x[i, j] = x[i, j] * b[i] * W[j]""",
        "layer": """
                T.reduce_sum(x, a, dim=1)
                for i, j in T.Parallel(R, N):
                    x[i, j] = x[i, j] - a[i] / N
                for i, j in T.Parallel(R, N):
                    y[i, j] = x[i, j] * x[i, j]
                T.reduce_sum(y, b, dim=1)
                for i, j in T.Parallel(R, N):
                    x[i, j] = x[i, j] * T.rsqrt(b[i] / N + 1e-5) * W[j]""",
        "absmax": """
                T.reduce_absmax(x, a, dim=1)
                for i in T.Parallel(R):
                    b[i] = 127.0 / T.max(a[i], 1e-4)
                for i, j in T.Parallel(R, N):
                    x[i, j] = T.round(x[i, j] * b[i])""",
    }[kind]
    y = 'y = T.alloc_fragment((R, N), "float32")' if "y[" in lines else "pass"
    load = d("direct", "shared")
    loads = "T.copy(X[bx * R, 0], x)"
    if load == "shared":
        loads = f'xs = T.alloc_shared((R, N), "{dtype}")\n                T.copy(X[bx * R, 0], xs)\n                T.copy(xs, x)'
    return _program(
        f"""
        M, N, R = {M}, {columns}, {rows_}


        @T.prim_func
        def main(X: T.Tensor((M, N), "{dtype}"), W: T.Tensor((N,), "float32"), Y: T.Tensor((M, N), "{dtype}")):
            with T.Kernel(T.ceildiv(M, R), threads={threads}) as bx:
                x = T.alloc_fragment((R, N), "float32")
                {y}
                a = T.alloc_fragment((R,), "float32")
                b = T.alloc_fragment((R,), "float32")
                {loads}{lines}
                T.copy(x, Y[bx * R, 0])
        """,
        f"""
        kernel = tilelang.compile(main)
        t = torch.{dtype}
        kernel(torch.randn(M, N, device="cuda").to(t), torch.randn(N, device="cuda"), torch.empty(M, N, device="cuda", dtype=t))
        """,
    )


def elementwise(d):
    bm, bn, threads, dtype = d(8, 16, 32, 64, 100, 128), d(32, 64, 100, 128, 256), d(128, 256, 512), d("float16", "bfloat16", "float32", "int8")
    M, N = d.size(2048, 8192, 8), d.size(2048, 8192, 8)
    if bm * bn / threads > 128:
        return None
    kind = d("add", "glu", "row", "transpose", "cast", "shift")
    number = dtype if kind != "cast" else "float32"
    if dtype == "int8" and kind in ("glu", "row"):
        return None
    out = dtype if kind != "cast" else d("float16", "bfloat16", "int8", "float8_e4m3fn")
    i, j = f"by * {bm} + i", f"bx * {bn} + j"
    value = {"add": f"A[{i}, {j}] + B[{i}, {j}]", "glu": f'A[{i}, {j}] * T.sigmoid(B[{i}, {j}].astype("float32")).astype("{number}")',
             "row": f"A[{i}, {j}] * B[{i}, 0] + B[0, {j}]", "transpose": "", "cast": f'A[{i}, {j}].astype("{out}")',
             "shift": f"T.if_then_else({j} >= 1, A[{i}, {j} - 1], A[{i}, {j}])"}[kind]  # fmt: skip
    guard = f"if ({i} < M) & ({j} < N):" if d(True, False) or M % bm or N % bn else "if True:"
    body = f"""
                for i, j in T.Parallel({bm}, {bn}):
                    {guard}
                        C[{i}, {j}] = {value}"""
    shape = "(M, N)"
    if kind == "transpose":
        shape = "(N, M)"
        body = f"""
                s = T.alloc_shared(({bm}, {bn}), "{dtype}")
                t = T.alloc_shared(({bn}, {bm}), "{dtype}")
                T.copy(A[by * {bm}, bx * {bn}], s)
                for i, j in T.Parallel({bn}, {bm}):
                    t[i, j] = s[j, i]
                T.copy(t, C[bx * {bn}, by * {bm}])"""
    made = "torch.randint(-100, 100, (M, N), device='cuda', dtype=torch.int8)" if number == "int8" else f"torch.randn(M, N, device='cuda').to(torch.{number})"
    return _program(
        f"""
        M, N = {M}, {N}


        @T.prim_func
        def main(A: T.Tensor((M, N), "{number}"), B: T.Tensor((M, N), "{number}"), C: T.Tensor({shape}, "{out}")):
            with T.Kernel(T.ceildiv(N, {bn}), T.ceildiv(M, {bm}), threads={threads}) as (bx, by):{body}
        """,
        f"""
        kernel = tilelang.compile(main)
        kernel({made}, {made}, torch.empty({shape}, device="cuda", dtype=torch.{out}))
        """,
    )


def columns(d):
    bm, bn, threads = d(32, 64, 128, 256), d(32, 64, 128, 256), d(128, 256)
    dtype, out_of = d("float16", "float32"), d("sum", "max")
    if bm * bn / threads > 128:
        return None
    M, N = d.size(4096, 16384, 256), d.size(4096, 8192, 256)
    return _program(
        f"""
        M, N = {M}, {N}


        @T.prim_func
        def main(A: T.Tensor((M, N), "{dtype}"), C: T.Tensor((N,), "float32")):
            with T.Kernel(T.ceildiv(N, {bn}), threads={threads}) as bx:
                s = T.alloc_shared(({bm}, {bn}), "{dtype}")
                x = T.alloc_fragment(({bm}, {bn}), "float32")
                r = T.alloc_fragment(({bn},), "float32")
                T.fill(r, {"0" if out_of == "sum" else '-T.infinity("float32")'})
                for k in T.Pipelined(T.ceildiv(M, {bm}), num_stages={d(0, 2, 3)}):
                    T.copy(A[k * {bm}, bx * {bn}], s)
                    T.copy(s, x)
                    T.reduce_{out_of}(x, r, dim=0, clear=False)
                T.copy(r, C[bx * {bn}])
        """,
        f"""
        kernel = tilelang.compile(main)
        kernel(torch.randn(M, N, device="cuda").to(torch.{dtype}), torch.empty(N, device="cuda"))
        """,
    )


def convolution(d):
    bm, bn, bk, threads, stages = d(64, 128, 192), d(64, 96, 128, 256), d(32, 64), d(128, 256), d(2, 3, 4)
    C, F, H, batch, kernel, stride = d(64, 128, 256), d(64, 128, 256, 320), d(7, 9) if d.small else d(28, 32, 56), d.long(8, 16), d(1, 3), d(1, 2)
    if bm * bn / threads > 160 or not _fits((bm + bn) * bk * 2 * stages):
        return None
    pad = kernel // 2
    size = (H + 2 * pad - kernel) // stride + 1
    return _program(
        f"""
        N, C, H, W, F, K, S, P = {batch}, {C}, {H}, {H}, {F}, {kernel}, {stride}, {pad}
        OH, OW = {size}, {size}


        @T.prim_func
        def main(data: T.Tensor((N, H, W, C), "float16"), weight: T.Tensor((K, K, C, F), "float16"), out: T.Tensor((N, OH, OW, F), "float16")):
            with T.Kernel(T.ceildiv(F, {bn}), T.ceildiv(N * OH * OW, {bm}), threads={threads}) as (bx, by):
                ds = T.alloc_shared(({bm}, {bk}), "float16")
                ws = T.alloc_shared(({bk}, {bn}), "float16")
                o = T.alloc_fragment(({bm}, {bn}), "float32")
                flat = T.Tensor((K * K * C, F), "float16", weight.data)
                flat_out = T.Tensor((N * OH * OW, F), "float16", out.data)
                T.clear(o)
                for k in T.Pipelined(T.ceildiv(K * K * C, {bk}), num_stages={stages}):
                    for i, j in T.Parallel({bm}, {bk}):
                        kk = k * {bk} + j
                        m = by * {bm} + i
                        h = m % (OH * OW) // OW * S + kk // (K * C) - P
                        w = m % OW * S + kk // C % K - P
                        inside = (h >= 0) & (w >= 0) & (h < H) & (w < W)
                        ds[i, j] = T.if_then_else(inside, data[m // (OH * OW), h, w, kk % C], 0)
                    T.copy(flat[k * {bk}, bx * {bn}], ws)
                    T.gemm(ds, ws, o)
                T.copy(o, flat_out[by * {bm}, bx * {bn}])
        """,
        """
        kernel = tilelang.compile(main)
        kernel(torch.randn(N, H, W, C, device="cuda").half(), torch.randn(K, K, C, F, device="cuda").half(), torch.empty(N, OH, OW, F, device="cuda", dtype=torch.float16))
        """,
    )


def gemv(d):
    bn, bk, threads, dtype = d(4, 8, 16, 32), d(128, 256, 512, 1024), d(128, 256), d("float16", "bfloat16")
    N, K = d.size(2048, 16384, 64), d.size(2048, 16384, 1024)
    if bn * bk / threads > 128:
        return None
    return _program(
        f"""
        N, K = {N}, {K}


        @T.prim_func
        def main(A: T.Tensor((K,), "{dtype}"), B: T.Tensor((N, K), "{dtype}"), C: T.Tensor((N,), "{dtype}")):
            with T.Kernel(T.ceildiv(N, {bn}), threads={threads}) as bx:
                a = T.alloc_shared(({bk},), "{dtype}")
                x = T.alloc_fragment(({bn}, {bk}), "{dtype}")
                acc = T.alloc_fragment(({bn}, {bk}), "float32")
                r = T.alloc_fragment(({bn},), "float32")
                T.clear(acc)
                for k in T.serial(T.ceildiv(K, {bk})):
                    T.copy(A[k * {bk}], a)
                    T.copy(B[bx * {bn}, k * {bk}], x)
                    for i, j in T.Parallel({bn}, {bk}):
                        acc[i, j] += x[i, j].astype("float32") * a[j].astype("float32")
                T.reduce_sum(acc, r, dim=1)
                T.copy(r, C[bx * {bn}])
        """,
        f"""
        kernel = tilelang.compile(main)
        t = torch.{dtype}
        kernel(torch.randn(K, device="cuda").to(t), torch.randn(N, K, device="cuda").to(t), torch.empty(N, device="cuda", dtype=t))
        """,
    )


def grouped(d):
    bm, bn, bk, threads, stages, dtype = d(64, 128, 192), d(64, 96, 128, 256), d(32, 64, 128), d(128, 256, 384), d(2, 3, 4), d("float16", "bfloat16")
    groups, N, K = d(4, 8, 16), d.size(1024, 4096, 128), d.size(1024, 4096, 64)
    if bm * bn / threads > 160 or not _fits((bm + bn) * bk * 2 * stages):
        return None
    return _program(
        f"""
        G, N, K, M = {groups}, {N}, {K}, {d.long(8192)}


        @T.prim_func
        def main(A: T.Tensor((M, K), "{dtype}"), B: T.Tensor((G, K, N), "{dtype}"), expert: T.Tensor((M // {bm} + 1,), "int32"), C: T.Tensor((M, N), "{dtype}")):
            with T.Kernel(T.ceildiv(M, {bm}), T.ceildiv(N, {bn}), threads={threads}) as (bx, by):
                As = T.alloc_shared(({bm}, {bk}), "{dtype}")
                Bs = T.alloc_shared(({bk}, {bn}), "{dtype}")
                c = T.alloc_fragment(({bm}, {bn}), "float32")
                e = expert[bx]
                T.clear(c)
                for k in T.Pipelined(T.ceildiv(K, {bk}), num_stages={stages}):
                    T.copy(A[bx * {bm}, k * {bk}], As)
                    T.copy(B[e, k * {bk} : (k + 1) * {bk}, by * {bn} : (by + 1) * {bn}], Bs)
                    T.gemm(As, Bs, c)
                T.copy(c, C[bx * {bm}, by * {bn}])
        """,
        f"""
        kernel = tilelang.compile(main)
        t = torch.{dtype}
        kernel(torch.randn(M, K, device="cuda").to(t), torch.randn(G, K, N, device="cuda").to(t),
               torch.randint(0, G, (M // {bm} + 1,), device="cuda", dtype=torch.int32).sort().values, torch.empty(M, N, device="cuda", dtype=t))
        """,
    )


def gathered(d):
    bm, bn, bk, threads, stages, dtype = d(64, 128), d(64, 128, 256), d(32, 64), d(128, 256), d(2, 3), d("float16", "bfloat16")
    N, K = d.size(1024, 4096, 128), d.size(1024, 4096, 64)
    if bm * bn / threads > 160:
        return None
    return _program(
        f"""
        R, N, K, M = {d.long(16384)}, {N}, {K}, {d.long(4096)}


        @T.prim_func
        def main(A: T.Tensor((R, K), "{dtype}"), B: T.Tensor((N, K), "{dtype}"), index: T.Tensor((M,), "int32"), C: T.Tensor((M, N), "{dtype}")):
            with T.Kernel(T.ceildiv(N, {bn}), T.ceildiv(M, {bm}), threads={threads}) as (bx, by):
                As = T.alloc_shared(({bm}, {bk}), "{dtype}")
                Bs = T.alloc_shared(({bn}, {bk}), "{dtype}")
                c = T.alloc_fragment(({bm}, {bn}), "float32")
                T.clear(c)
                for k in T.Pipelined(T.ceildiv(K, {bk}), num_stages={stages}):
                    for i, j in T.Parallel({bm}, {bk}):
                        As[i, j] = A[index[by * {bm} + i], k * {bk} + j]
                    T.copy(B[bx * {bn}, k * {bk}], Bs)
                    T.gemm(As, Bs, c, transpose_B=True)
                T.copy(c, C[by * {bm}, bx * {bn}])
        """,
        f"""
        kernel = tilelang.compile(main)
        t = torch.{dtype}
        kernel(torch.randn(R, K, device="cuda").to(t), torch.randn(N, K, device="cuda").to(t),
               torch.randint(0, R, (M,), device="cuda", dtype=torch.int32), torch.empty(M, N, device="cuda", dtype=t))
        """,
    )


def scaled(d):
    bm, bn, threads, stages = d(64, 128), d(64, 128), d(128, 256), d(2, 3, 4)
    M, N, K = d.size(512, 4096, 128), d.size(1024, 4096, 128), d.size(1024, 7168, 128)
    return _program(
        f"""
        M, N, K = {M}, {N}, {K}


        @T.prim_func
        def main(A: T.Tensor((M, K), "float8_e4m3fn"), B: T.Tensor((N, K), "float8_e4m3fn"), SA: T.Tensor((M, K // 128), "float32"),
                 SB: T.Tensor((N // 128, K // 128), "float32"), C: T.Tensor((M, N), "bfloat16")):
            with T.Kernel(T.ceildiv(N, {bn}), T.ceildiv(M, {bm}), threads={threads}) as (bx, by):
                As = T.alloc_shared(({bm}, 128), "float8_e4m3fn")
                Bs = T.alloc_shared(({bn}, 128), "float8_e4m3fn")
                s = T.alloc_shared(({bm},), "float32")
                c = T.alloc_fragment(({bm}, {bn}), "float32")
                total = T.alloc_fragment(({bm}, {bn}), "float32")
                T.clear(total)
                T.clear(c)
                for k in T.Pipelined(T.ceildiv(K, 128), num_stages={stages}):
                    T.copy(A[by * {bm}, k * 128], As)
                    T.copy(B[bx * {bn}, k * 128], Bs)
                    sb = SB[bx * {bn} // 128, k]
                    for i in T.Parallel({bm}):
                        s[i] = SA[by * {bm} + i, k] * sb
                    T.gemm(As, Bs, c, transpose_B=True)
                    for i, j in T.Parallel({bm}, {bn}):
                        total[i, j] += c[i, j] * s[i]
                    T.clear(c)
                T.copy(total, C[by * {bm}, bx * {bn}])
        """,
        """
        kernel = tilelang.compile(main)
        f8 = torch.float8_e4m3fn
        kernel(torch.randn(M, K, device="cuda").to(f8), torch.randn(N, K, device="cuda").to(f8), torch.rand(M, K // 128, device="cuda"),
               torch.rand(N // 128, K // 128, device="cuda"), torch.empty(M, N, device="cuda", dtype=torch.bfloat16))
        """,
    )


def decoding(d):
    dim, bn, bh, threads, stages, dtype = d(64, 128, 256), d(32, 64, 128), d(16, 32, 64), d(128, 256), d(1, 2, 3), d("float16", "bfloat16")
    heads, batch, seq = d.long(1, 4, 8), d.long(8, 32, 64), d.long(2048, 4096, 8192)
    if not _fits((bh * dim + 2 * stages * bn * dim) * 2) or bh * (dim + bn) / threads > 160:
        return None
    return _program(
        f"""
        B, HK, G, S, D = {batch}, {heads}, {bh}, {seq}, {dim}
        scale = D ** -0.5 * 1.44269504


        @T.prim_func
        def main(Q: T.Tensor((B, HK * G, D), "{dtype}"), K: T.Tensor((B, S, HK, D), "{dtype}"), V: T.Tensor((B, S, HK, D), "{dtype}"),
                 length: T.Tensor((B,), "int32"), O: T.Tensor((B, HK * G, D), "{dtype}")):
            with T.Kernel(HK, B, threads={threads}) as (bx, by):
                q = T.alloc_shared((G, D), "{dtype}")
                kk = T.alloc_shared(({bn}, D), "{dtype}")
                vv = T.alloc_shared(({bn}, D), "{dtype}")
                ps = T.alloc_shared((G, {bn}), "{dtype}")
                s = T.alloc_fragment((G, {bn}), "float32")
                o = T.alloc_fragment((G, D), "float32")
                m = T.alloc_fragment((G,), "float32")
                m0 = T.alloc_fragment((G,), "float32")
                r = T.alloc_fragment((G,), "float32")
                l = T.alloc_fragment((G,), "float32")
                lsum = T.alloc_fragment((G,), "float32")
                T.copy(Q[by, bx * G : (bx + 1) * G, :], q)
                T.fill(o, 0)
                T.fill(l, 0)
                T.fill(m, -T.infinity("float32"))
                n = length[by]
                for k in T.Pipelined(T.ceildiv(n, {bn}), num_stages={stages}):
                    T.copy(K[by, k * {bn} : (k + 1) * {bn}, bx, :], kk)
                    T.clear(s)
                    T.gemm(q, kk, s, transpose_B=True, policy=T.GemmWarpPolicy.FullCol)
                    for i, j in T.Parallel(G, {bn}):
                        s[i, j] = T.if_then_else(k * {bn} + j < n, s[i, j], -T.infinity("float32"))
                    T.copy(m, m0)
                    T.reduce_max(s, m, dim=1, clear=False)
                    for i in T.Parallel(G):
                        m[i] = T.max(m[i], m0[i])
                        r[i] = T.exp2(m0[i] * scale - m[i] * scale)
                    for i, j in T.Parallel(G, {bn}):
                        s[i, j] = T.exp2(s[i, j] * scale - m[i] * scale)
                    T.reduce_sum(s, lsum, dim=1)
                    for i in T.Parallel(G):
                        l[i] = l[i] * r[i] + lsum[i]
                    T.copy(s, ps)
                    for i, j in T.Parallel(G, D):
                        o[i, j] *= r[i]
                    T.copy(V[by, k * {bn} : (k + 1) * {bn}, bx, :], vv)
                    T.gemm(ps, vv, o, policy=T.GemmWarpPolicy.FullCol)
                for i, j in T.Parallel(G, D):
                    o[i, j] /= l[i]
                T.copy(o, O[by, bx * G : (bx + 1) * G, :])
        """,
        f"""
        kernel = tilelang.compile(main)
        t = torch.{dtype}
        kernel(torch.randn(B, HK * G, D, device="cuda").to(t), torch.randn(B, S, HK, D, device="cuda").to(t), torch.randn(B, S, HK, D, device="cuda").to(t),
               torch.randint(S // 2, S, (B,), device="cuda", dtype=torch.int32), torch.empty(B, HK * G, D, device="cuda", dtype=t))
        """,
    )


def chunks(d):
    chunk, dk, dv, threads, stages, dtype = d(32, 64, 128), d(64, 128), d(32, 64, 128), d(128, 256), d(1, 2), d("float16", "bfloat16")
    if not _fits((2 * chunk * dk + chunk * dv) * 2 * stages + (dk * dv + chunk * chunk) * 2) or (chunk * chunk + chunk * dv + dk * dv) / threads > 200:
        return None
    return _program(
        f"""
        B, H, S, DK, DV, C = {d.long(2, 4)}, {d.long(16)}, {chunk * 3 if d.small else d(2048, 4096)}, {dk}, 128, {chunk}


        @T.prim_func
        def main(Q: T.Tensor((B, S, H, DK), "{dtype}"), K: T.Tensor((B, S, H, DK), "{dtype}"), V: T.Tensor((B, S, H, DV), "{dtype}"), O: T.Tensor((B, S, H, DV), "{dtype}")):
            with T.Kernel(DV // {dv}, H, B, threads={threads}) as (bx, by, bz):
                q = T.alloc_shared((C, DK), "{dtype}")
                k = T.alloc_shared((C, DK), "{dtype}")
                v = T.alloc_shared((C, {dv}), "{dtype}")
                hs = T.alloc_shared((DK, {dv}), "{dtype}")
                ss = T.alloc_shared((C, C), "{dtype}")
                h = T.alloc_fragment((DK, {dv}), "float32")
                s = T.alloc_fragment((C, C), "float32")
                o = T.alloc_fragment((C, {dv}), "float32")
                T.clear(h)
                for t in T.Pipelined(S // C, num_stages={stages}):
                    T.copy(Q[bz, t * C : (t + 1) * C, by, :], q)
                    T.copy(K[bz, t * C : (t + 1) * C, by, :], k)
                    T.copy(V[bz, t * C : (t + 1) * C, by, bx * {dv} : (bx + 1) * {dv}], v)
                    T.gemm(q, k, s, transpose_B=True, clear_accum=True)
                    for i, j in T.Parallel(C, C):
                        ss[i, j] = T.if_then_else(i >= j, s[i, j], 0)
                    T.copy(h, hs)
                    T.gemm(ss, v, o, clear_accum=True)
                    T.gemm(q, hs, o)
                    T.gemm(k, v, h, transpose_A=True)
                    T.copy(o, O[bz, t * C : (t + 1) * C, by, bx * {dv} : (bx + 1) * {dv}])
        """,
        f"""
        kernel = tilelang.compile(main)
        t = torch.{dtype}
        kernel(*[torch.randn(B, S, H, n, device="cuda").to(t) / 16 for n in (DK, DK, DV)], torch.empty(B, S, H, DV, device="cuda", dtype=t))
        """,
    )


def split_sum(d):
    bm, bn, bk, threads, stages, split = d(32, 64, 128), d(64, 128), d(32, 64, 128), d(128, 256), d(2, 3, 4), d(2, 4, 8)
    M, N, K = d.size(64, 1024, 64), d.size(512, 2048, 128), (128 * split if d.small else 4096) * d(1, 2, 4)
    if bm * bn / threads > 160:
        return None
    return _program(
        f"""
        M, N, K, P = {M}, {N}, {K}, {split}


        @T.prim_func
        def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
            with T.Kernel(T.ceildiv(N, {bn}), T.ceildiv(M, {bm}), P, threads={threads}) as (bx, by, bz):
                As = T.alloc_shared(({bm}, {bk}), "float16")
                Bs = T.alloc_shared(({bk}, {bn}), "float16")
                c = T.alloc_fragment(({bm}, {bn}), "float32")
                T.clear(c)
                for k in T.Pipelined(K // P // {bk}, num_stages={stages}):
                    T.copy(A[by * {bm}, bz * (K // P) + k * {bk}], As)
                    T.copy(B[bz * (K // P) + k * {bk}, bx * {bn}], Bs)
                    T.gemm(As, Bs, c)
                for i, j in T.Parallel({bm}, {bn}):
                    T.atomic_add(C[by * {bm} + i, bx * {bn} + j], c[i, j])
        """,
        """
        kernel = tilelang.compile(main)
        kernel(torch.randn(M, K, device="cuda").half(), torch.randn(K, N, device="cuda").half(), torch.zeros(M, N, device="cuda"))
        """,
    )


FAMILIES = (gemm_epilogue, attention, dequantized, rows, elementwise, columns, convolution, gemv, grouped, gathered, scaled, decoding, chunks, split_sum)


def write(folder, number, seed, families, small=False):
    os.makedirs(folder, exist_ok=True)
    for index in range(number):
        family, attempt, text = families[index % len(families)], 0, None
        while text is None:
            text = family(Draw(f"{seed} {index} {attempt}", small))
            attempt += 1
        with open(os.path.join(folder, f"{family.__name__}_{seed}_{index}.py"), "w", encoding="utf-8") as file:
            file.write(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--number", type=int, default=60)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--family", action="append")
    parser.add_argument("--small", action="store_true", help="calls of a few tiles, for engines without a GPU")
    options = parser.parse_args()
    chosen = [f for f in FAMILIES if not options.family or any(text in f.__name__ for text in options.family)]
    write(options.folder, options.number, options.seed, chosen, options.small)


if __name__ == "__main__":
    main()
