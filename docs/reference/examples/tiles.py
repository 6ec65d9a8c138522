"""Examples of the pages of the reference about memory and tiles: README.md of the folder above says how they are used."""
import numpy as np
import tilewright as tw
import tilewright.language as T

random = np.random.default_rng(0)


# --- alloc_barrier
@T.prim_func
def handed_over(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=256):
        x = T.alloc_shared((64,), "float32")
        full = T.alloc_barrier([128])
        with T.ws(0):
            for i in T.Parallel(64):
                x[i] = X[i] * 2
            T.barrier_arrive(full)
        with T.ws(1):
            T.barrier_wait(full, 0)
            for i in T.Parallel(64):
                Y[i] = x[i]

x = random.standard_normal(64, "float32")
assert (tw.compile(handed_over, out_idx=-1)(x) == 2 * x).all()
# wrong: full = T.alloc_barrier([0])
# wrong: full = T.alloc_barrier(["128"])

# --- alloc_fragment
@T.prim_func
def scaled(X: T.Tensor((16, 64), "float32"), Y: T.Tensor((16, 64), "float32")):
    with T.Kernel(1, threads=128):
        x = T.alloc_fragment((16, 64), "float32")
        T.copy(X, x)
        for i, j in T.Parallel(16, 64):
            x[i, j] = x[i, j] * 2
        T.copy(x, Y)

x = random.standard_normal((16, 64), "float32")
assert (tw.compile(scaled, out_idx=-1)(x) == 2 * x).all()
# wrong: x = T.alloc_fragment((16, 64), "flaot32")
# wrong: x = T.alloc_fragment((16, -64), "float32")

# --- alloc_shared = alloc_fragment: alloc_fragment -> alloc_shared

# --- alloc_global
@T.prim_func
def in_two_launches(X: T.Tensor((256,), "float32"), Y: T.Tensor((256,), "float32")):
    half = T.alloc_global((256,), "float32")
    with T.Kernel(2, threads=128) as bx:
        for i in T.Parallel(128):
            half[bx * 128 + i] = X[bx * 128 + i] * 0.5
    with T.Kernel(2, threads=128) as bx:
        for i in T.Parallel(128):
            Y[bx * 128 + i] = half[255 - (bx * 128 + i)]

x = random.standard_normal(256, "float32")
assert (tw.compile(in_two_launches, out_idx=-1)(x) == x[::-1] / 2).all()
# wrong: half = T.alloc_global((256.5,), "float32")

# --- alloc_local
@T.prim_func
def neighbours(X: T.Tensor((128, 4), "float32"), Y: T.Tensor((128,), "float32")):
    with T.Kernel(1, threads=128):
        mine = T.alloc_local((4,), "float32")
        tx = T.get_thread_binding()
        for j in T.unroll(4):
            mine[j] = X[tx, j]
        Y[tx] = mine[0] + mine[1] + mine[2] + mine[3]

x = random.integers(-9, 9, (128, 4)).astype("float32")
assert (tw.compile(neighbours, out_idx=-1)(x) == x.sum(axis=1)).all()
# wrong: mine = T.alloc_local((4, 0), "float32")

# --- alloc_reducer
@T.prim_func
def column_sums(X: T.Tensor((32, 64), "float32"), Y: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        total = T.alloc_reducer((64,), "float32", "sum")
        T.clear(total)
        for i, j in T.Parallel(32, 64):
            total[j] += X[i, j]
        T.finalize_reducer(total)
        T.copy(total, Y)

x = random.integers(-9, 9, (32, 64)).astype("float32")
assert (tw.compile(column_sums, out_idx=-1)(x) == x.sum(axis=0)).all()
# wrong: total = T.alloc_reducer((64,), "float32", "product")

# --- finalize_reducer = alloc_reducer
# wrong: T.finalize_reducer(total, batch=3)

# --- make_tensor
@T.prim_func
def by_address(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        second_half = T.make_tensor(T.address_of(X[32]), (32,), "float32")
        for i in T.Parallel(32):
            Y[i] = second_half[i]
        for i in T.Parallel(32):
            Y[32 + i] = X[i]

x = random.standard_normal(64, "float32")
assert (tw.compile(by_address, out_idx=-1)(x) == np.roll(x, 32)).all()
# wrong: second_half = T.make_tensor(32, (32,), "float32")

# --- address_of = make_tensor
# wrong: second_half = T.make_tensor(T.address_of(X[32] + 1), (32,), "float32")

# --- reshape
@T.prim_func
def flat(X: T.Tensor((8, 16), "float32"), Y: T.Tensor((128,), "float32")):
    with T.Kernel(1, threads=128):
        x = T.alloc_shared((8, 16), "float32")
        T.copy(X, x)
        line = T.reshape(x, (128,))
        for i in T.Parallel(128):
            Y[i] = line[i]

x = random.standard_normal((8, 16), "float32")
assert (tw.compile(flat, out_idx=-1)(x) == x.reshape(128)).all()
# wrong: line = T.reshape(x, (100,))

# --- view
@T.prim_func
def halves(X: T.Tensor((64,), "int32"), Y: T.Tensor((128,), "int16")):
    with T.Kernel(1, threads=128):
        x = T.alloc_shared((64,), "int32")
        T.copy(X, x)
        shorter = T.view(x, (128,), "int16")
        for i in T.Parallel(128):
            Y[i] = shorter[i]

x = random.integers(-(2**31), 2**31, 64).astype("int32")
assert (tw.compile(halves, out_idx=-1)(x) == x.view("int16")).all()
# wrong: shorter = T.view(x, (64,), "int16")

# --- clear
@T.prim_func
def product(A: T.Tensor((64, 32), "float16"), B: T.Tensor((32, 64), "float16"), C: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((64, 32), "float16")
        b = T.alloc_shared((32, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.copy(A, a)
        T.copy(B, b)
        T.clear(c)
        T.gemm(a, b, c)
        T.copy(c, C)

a, b = (random.integers(-4, 5, shape).astype("float16") for shape in ((64, 32), (32, 64)))
assert (tw.compile(product, out_idx=-1)(a, b) == a.astype("float32") @ b.astype("float32")).all()
# wrong: T.clear(3)
# wrong: T.clear()

# --- gemm = clear
# wrong: T.gemm(A, b, c)
# wrong: T.gemm(b, a, c)
# wrong: T.gemm(a, b, c, policy=7)

# --- fill
@T.prim_func
def filled(Y: T.Tensor((16, 64), "float32")):
    with T.Kernel(1, threads=128):
        y = T.alloc_fragment((16, 64), "float32")
        T.fill(y, 3)
        T.copy(y, Y)

y = np.zeros((16, 64), "float32")
tw.compile(filled)(y)
assert (y == 3).all()
# wrong: T.fill(y)
# wrong: T.fill(3, y)

# --- copy
@T.prim_func
def converted(X: T.Tensor((100, 64), "float32"), Y: T.Tensor((100, 64), "float16")):
    with T.Kernel(T.ceildiv(100, 32), threads=128) as by:
        tile = T.alloc_shared((32, 64), "float16")
        T.copy(X[by * 32, 0], tile)
        T.copy(tile, Y[by * 32, 0])

x = random.standard_normal((100, 64), "float32")
assert (tw.compile(converted, out_idx=-1)(x) == x.astype("float16")).all()
# wrong: T.copy(X[by * 32, 0], tile[0:16, 0:64])
# wrong: T.copy(X[by * 32, 0])
# wrong: T.copy(X[by * 32], tile)

# --- async_copy
@T.prim_func
def not_waiting(X: T.Tensor((16, 64), "float32"), Y: T.Tensor((16, 64), "float32")):
    with T.Kernel(1, threads=128):
        x = T.alloc_shared((16, 64), "float32")
        T.async_copy(X, x)
        T.cp_async_wait(0)
        T.sync_threads()
        for i, j in T.Parallel(16, 64):
            Y[i, j] = x[i, j] + 1

x = random.standard_normal((16, 64), "float32")
assert (tw.compile(not_waiting, out_idx=-1)(x) == x + 1).all()
# wrong: T.async_copy(x, X)

# --- cp_async_wait = async_copy
# wrong: T.cp_async_wait(-1)

# --- ptx_wait_group = async_copy: cp_async_wait -> ptx_wait_group
# wrong: T.ptx_wait_group(-1)

# --- copy_cluster
@T.prim_func
def swapped(X: T.Tensor((2, 128), "float32"), Y: T.Tensor((2, 128), "float32")):
    with T.Kernel(2, threads=128, cluster_dims=2) as bx:
        mine = T.alloc_shared((128,), "float32")
        other = T.alloc_shared((128,), "float32")
        T.copy(X[bx, 0], mine)
        T.copy_cluster(mine, other, dst_block=1 - bx)
        T.cluster_sync()
        T.copy(other, Y[bx, 0])

x = random.standard_normal((2, 128), "float32")
assert (tw.compile(swapped, out_idx=-1)(x) == x[::-1]).all()
# wrong: T.copy_cluster(mine, other, dst_block=1 - bx, cluster_mask=3)

# --- cluster_sync = copy_cluster
# wrong: T.cluster_sync(0)

# --- cumsum
@T.prim_func
def running(X: T.Tensor((16, 64), "float32"), Y: T.Tensor((16, 64), "float32")):
    with T.Kernel(1, threads=128):
        x = T.alloc_shared((16, 64), "float32")
        y = T.alloc_shared((16, 64), "float32")
        T.copy(X, x)
        T.cumsum(x, y, dim=1)
        T.copy(y, Y)

x = random.integers(-9, 9, (16, 64)).astype("float32")
assert (tw.compile(running, out_idx=-1)(x) == np.add.accumulate(x, axis=1)).all()
# wrong: T.cumsum(x, y, dim=2)
# wrong: T.cumsum(X, y, dim=1)

# --- cummax = cumsum: cumsum -> cummax ;; np.add -> np.maximum

# --- gemm_sp
@T.prim_func
def sparse(A: T.Tensor((64, 32), "float16"), E: T.Tensor((64, 8), "int16"), B: T.Tensor((64, 64), "float16"),
           C: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((64, 32), "float16")
        e = T.alloc_shared((64, 4), "int16")
        b = T.alloc_shared((64, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.copy(A, a)
        T.copy(E[0, 0], e)
        T.copy(B, b)
        T.clear(c)
        T.gemm_sp(a, e, b, c)
        T.copy(c, C)

a, b = (random.integers(-4, 5, shape).astype("float16") for shape in ((64, 32), (64, 64)))
wide = np.zeros((64, 64), "float32")                    # of each four elements the first and the third are kept
wide[:, 0::4], wide[:, 2::4] = a[:, 0::2], a[:, 1::2]
e = np.full((64, 8), 0x8888, "uint16").view("int16")    # positions 0 and 2, two bits each: 0b1000
assert (tw.compile(sparse, out_idx=-1)(a, e, b) == wide @ b.astype("float32")).all()
# wrong: T.gemm_sp(a, b, e, c)

# --- im2col
@T.prim_func
def patches(X: T.Tensor((1, 8, 8, 16), "float16"), Y: T.Tensor((64, 16), "float16")):
    with T.Kernel(1, threads=128):
        columns = T.alloc_shared((64, 16), "float16")
        T.im2col(X, columns, 0, 0, 1, 1, 1, 0)
        T.copy(columns, Y)

x = random.standard_normal((1, 8, 8, 16)).astype("float16")
assert (tw.compile(patches, out_idx=-1)(x) == x.reshape(64, 16)).all()
# wrong: T.im2col(X, columns, 0, 0, 3, 0, 1, 1)

# --- reduce_sum
@T.prim_func
def along_rows(X: T.Tensor((16, 64), "float32"), Y: T.Tensor((16,), "float32")):
    with T.Kernel(1, threads=128):
        x = T.alloc_fragment((16, 64), "float32")
        y = T.alloc_fragment((16,), "float32")
        T.copy(X, x)
        T.reduce_sum(x, y, dim=1)
        T.copy(y, Y)

x = random.integers(-9, 9, (16, 64)).astype("float32")
assert (tw.compile(along_rows, out_idx=-1)(x) == x.sum(axis=1)).all()
# wrong: T.reduce_sum(x, y, dim=2)
# wrong: T.reduce_sum(x, y, dim=0)
# wrong: T.reduce_sum(X, Y, dim=1)

# --- reduce_max = reduce_sum: reduce_sum -> reduce_max ;; x.sum -> x.max
# --- reduce_min = reduce_sum: reduce_sum -> reduce_min ;; x.sum -> x.min
# --- reduce_abssum = reduce_sum: reduce_sum -> reduce_abssum ;; x.sum -> abs(x).sum
# --- reduce_absmax = reduce_sum: reduce_sum -> reduce_absmax ;; x.sum -> abs(x).max

# --- reduce_bitand
@T.prim_func
def along_rows(X: T.Tensor((16, 64), "int32"), Y: T.Tensor((16,), "int32")):
    with T.Kernel(1, threads=128):
        x = T.alloc_fragment((16, 64), "int32")
        y = T.alloc_fragment((16,), "int32")
        T.copy(X, x)
        T.reduce_bitand(x, y, dim=1)
        T.copy(y, Y)

x = random.integers(0, 2**31, (16, 64)).astype("int32") | 7
assert (tw.compile(along_rows, out_idx=-1)(x) == np.bitwise_and.reduce(x, axis=1)).all()
# wrong: T.reduce_bitand(x, y, dim=2)

# --- reduce_bitor = reduce_bitand: reduce_bitand -> reduce_bitor ;; bitwise_and -> bitwise_or
# --- reduce_bitxor = reduce_bitand: reduce_bitand -> reduce_bitxor ;; bitwise_and -> bitwise_xor

# --- tma_copy
@T.prim_func
def by_tma(X: T.Tensor((64, 64), "float16"), Y: T.Tensor((64, 64), "float16")):
    with T.Kernel(1, threads=128):
        tile = T.alloc_shared((64, 64), "float16")
        arrived = T.alloc_barrier([128])
        T.tma_copy(X[0:64, 0:64], tile, barrier=arrived)
        T.barrier_arrive(arrived)
        T.barrier_wait(arrived, 0)
        T.fence_proxy_async()
        T.tma_copy(tile, Y[0:64, 0:64])
        T.tma_store_wait(0)

x = random.standard_normal((64, 64)).astype("float16")
assert (tw.compile(by_tma, out_idx=-1)(x) == x).all()
# wrong: T.tma_copy(X[0:64, 0:64], tile)

# --- tma_store_wait = tma_copy
# wrong: T.tma_store_wait(-1)

# --- wgmma_gemm
@T.prim_func
def in_the_background(A: T.Tensor((64, 32), "float16"), B: T.Tensor((32, 64), "float16"), C: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((64, 32), "float16")
        b = T.alloc_shared((32, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.copy(A, a)
        T.copy(B, b)
        T.wgmma_gemm(a, b, c, clear_accum=True)
        T.wait_wgmma(0)
        T.copy(c, C)

a, b = (random.integers(-4, 5, shape).astype("float16") for shape in ((64, 32), (32, 64)))
assert (tw.compile(in_the_background, out_idx=-1)(a, b) == a.astype("float32") @ b.astype("float32")).all()
# wrong: T.wgmma_gemm(a, A, c)

# --- wait_wgmma = wgmma_gemm
# wrong: T.wait_wgmma(-1)

# --- warpgroup_wait = wgmma_gemm: wait_wgmma -> warpgroup_wait
# wrong: T.warpgroup_wait(-1)

# --- warpgroup_commit_batch = wgmma_gemm: T.wait_wgmma(0) -> T.warpgroup_commit_batch(); T.wait_wgmma(0)
# wrong: T.warpgroup_commit_batch(1)

# --- wgmma_gemm_sp = gemm_sp: T.gemm_sp(a, e, b, c) -> T.wgmma_gemm_sp(a, e, b, c); T.wait_wgmma(0)
# wrong: T.wgmma_gemm_sp(a, b, e, c)
