"""Examples of the pages of the reference about programs, launches and loops: words that record no operation themselves."""
import numpy as np
import tilewright as tw
import tilewright.language as T

random = np.random.default_rng(0)


# --- Kernel
@T.prim_func
def shifted(X: T.Tensor((100, 200), "float32"), Y: T.Tensor((100, 200), "float32")):
    with T.Kernel(T.ceildiv(200, 64), T.ceildiv(100, 32), threads=128) as (bx, by):
        for i, j in T.Parallel(32, 64):
            Y[by * 32 + i, bx * 64 + j] = X[by * 32 + i, bx * 64 + j] + 1

x = random.standard_normal((100, 200), "float32")
assert (tw.compile(shifted, out_idx=-1)(x) == x + 1).all()
# wrong: with T.Kernel(T.ceildiv(200, 64), T.ceildiv(100, 32), threads=0) as (bx, by):
# wrong: with T.Kernel(4, 4, 4, 4) as (bx, by):

# --- Parallel = Kernel
# wrong: for i, j in T.Parallel(32, 0.5):
# wrong: for i in T.Parallel():

# --- prim_func = Kernel
# wrong: @T.prim_func(3)

# --- Pipelined
@T.prim_func
def product(A: T.Tensor((128, 128), "float16"), B: T.Tensor((128, 128), "float16"), C: T.Tensor((128, 128), "float32")):
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((128, 32), "float16")
        b = T.alloc_shared((32, 128), "float16")
        c = T.alloc_fragment((128, 128), "float32")
        T.clear(c)
        for k in T.Pipelined(4, num_stages=3):
            T.copy(A[0, k * 32], a)
            T.copy(B[k * 32, 0], b)
            T.gemm(a, b, c)
        T.copy(c, C)

a, b = (random.integers(-4, 5, (128, 128)).astype("float16") for _ in range(2))
assert (tw.compile(product, out_idx=-1)(a, b) == a.astype("float32") @ b.astype("float32")).all()
# wrong: for k in T.Pipelined(4, num_stages=-1):

# --- serial
@T.prim_func
def sums(X: T.Tensor((128, 6), "float32"), Y: T.Tensor((128,), "float32")):
    with T.Kernel(1, threads=128):
        tx = T.get_thread_binding()
        total = T.alloc_var("float32", 0.0)
        for j in T.serial(0, 6, 2):
            total += X[tx, j]
        Y[tx] = total

x = random.integers(-9, 9, (128, 6)).astype("float32")
assert (tw.compile(sums, out_idx=-1)(x) == x[:, ::2].sum(axis=1)).all()
# wrong: for j in T.serial(0, 6, 0):

# --- unroll = serial: T.serial(0, 6, 2) -> T.unroll(6) ;; x[:, ::2] -> x
# wrong: for j in T.unroll(0.5):

# --- alloc_var = serial
# wrong: total = T.alloc_var("flaot32", 0.0)

# --- vectorized
@T.prim_func
def copied(X: T.Tensor((128, 4), "float32"), Y: T.Tensor((128, 4), "float32")):
    with T.Kernel(1, threads=128):
        tx = T.get_thread_binding()
        for j in T.vectorized(4):
            Y[tx, j] = X[tx, j]

x = random.standard_normal((128, 4), "float32")
assert (tw.compile(copied, out_idx=-1)(x) == x).all()
# wrong: for j in T.vectorized(0.5):

# --- Persistent
@T.prim_func
def shared_out(Y: T.Tensor((4, 4), "int32")):
    with T.Kernel(3, threads=128) as worker:
        for m, n in T.Persistent([4, 4], 3, worker):
            Y[m, n] = m * 10 + n

y = np.zeros((4, 4), "int32")
tw.compile(shared_out)(y)
assert (y == np.arange(4)[:, None] * 10 + np.arange(4)).all()
# wrong: for m, n in T.Persistent([4, 4], 3):

# --- ws
@T.prim_func
def two_groups(X: T.Tensor((2, 128), "float32"), Y: T.Tensor((2, 128), "float32")):
    with T.Kernel(1, threads=256):
        with T.ws(0):
            for i in T.Parallel(128):
                Y[0, i] = X[0, i] + 1
        with T.ws(1):
            for i in T.Parallel(128):
                Y[1, i] = X[1, i] * 2

x = random.standard_normal((2, 128), "float32")
assert (tw.compile(two_groups, out_idx=-1)(x) == np.stack([x[0] + 1, x[1] * 2])).all()
# wrong: with T.ws(5):

# --- dynamic
N = T.dynamic("N")

@T.prim_func
def doubled(X: T.Tensor((N,), "float32"), Y: T.Tensor((N,), "float32")):
    with T.Kernel(T.ceildiv(N, 128), threads=128) as bx:
        for i in T.Parallel(128):
            Y[bx * 128 + i] = X[bx * 128 + i] * 2

kernel = tw.compile(doubled, out_idx=-1)
for length in (1, 100, 1000):
    x = random.standard_normal(length, "float32")
    assert (kernel(x) == 2 * x).all()
# wrong: N = T.dynamic(3)

# --- annotate_layout
@T.prim_func
def padded(X: T.Tensor((32, 32), "float32"), Y: T.Tensor((32, 32), "float32")):
    with T.Kernel(1, threads=128):
        s = T.alloc_shared((32, 32), "float32")
        T.annotate_layout({s: T.Layout((32, 32), lambda i, j: i * 33 + j)})
        T.copy(X, s)
        for i, j in T.Parallel(32, 32):
            Y[i, j] = s[j, i]

x = random.standard_normal((32, 32), "float32")
assert (tw.compile(padded, out_idx=-1)(x) == x.T).all()
# wrong: T.annotate_layout({s: T.Layout((32, 32), lambda i, j, k: i * 33 + j)})

# --- Layout = annotate_layout
# wrong: T.annotate_layout({s: T.Layout((32, 32), lambda i: i)})

# --- annotate_safe_value
@T.prim_func
def largest(X: T.Tensor((100,), "float32"), Y: T.Tensor((1,), "float32")):
    with T.Kernel(1, threads=128):
        T.annotate_safe_value({X: -T.infinity("float32")})
        x = T.alloc_fragment((128,), "float32")
        y = T.alloc_fragment((1,), "float32")
        T.copy(X[0:128], x)
        T.reduce_max(x, y, dim=0)
        T.copy(y, Y)

x = -1 - random.random(100, "float32")
assert tw.compile(largest, out_idx=-1)(x)[0] == x.max()
# wrong: T.annotate_safe_value({X: "least"})

# --- macro
@T.macro
def add_one(tile, rows):
    for i in T.Parallel(rows):
        tile[i] = tile[i] + 1

@T.prim_func
def twice(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        x = T.alloc_fragment((64,), "float32")
        T.copy(X, x)
        add_one(x, 64)
        add_one(x, 64)
        T.copy(x, Y)

x = random.standard_normal(64, "float32")
assert (tw.compile(twice, out_idx=-1)(x) == x + 1 + 1).all()
# wrong: @T.macro(3)
