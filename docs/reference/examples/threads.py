"""Examples of the pages of the reference about threads and order."""
import numpy as np
import tilewright as tw
import tilewright.language as T

random = np.random.default_rng(0)


# --- get_thread_binding
@T.prim_func
def reversed_rows(X: T.Tensor((4, 128), "float32"), Y: T.Tensor((4, 128), "float32")):
    with T.Kernel(4, threads=128):
        tx = T.get_thread_binding(0)
        row = T.get_block_binding(0)
        Y[row, tx] = X[row, 127 - tx]

x = random.standard_normal((4, 128), "float32")
assert (tw.compile(reversed_rows, out_idx=-1)(x) == x[:, ::-1]).all()
# wrong: tx = T.get_thread_binding(3)

# --- get_block_binding = get_thread_binding
# wrong: row = T.get_block_binding(3)

# --- get_thread_extent = get_thread_binding: 127 - tx -> T.get_thread_extent(0) - 1 - tx
# wrong: Y[row, tx] = X[row, T.get_thread_extent(3) - 1 - tx]

# --- get_lane_idx
@T.prim_func
def of_each_thread(Y: T.Tensor((256,), "int32")):
    with T.Kernel(1, threads=256):
        tx = T.get_thread_binding()
        Y[tx] = T.get_lane_idx()

y = np.zeros(256, "int32")
tw.compile(of_each_thread)(y)
assert (y == np.arange(256) % 32).all()
# wrong: Y[tx] = T.get_lane_idx("32")

# --- get_warp_idx = get_lane_idx: get_lane_idx -> get_warp_idx ;; % 32 -> // 32
# wrong: Y[tx] = T.get_warp_idx("32")

# --- get_warp_idx_sync = get_lane_idx: get_lane_idx -> get_warp_idx_sync ;; % 32 -> // 32
# wrong: Y[tx] = T.get_warp_idx_sync("32")

# --- get_warp_group_idx = get_lane_idx: get_lane_idx -> get_warp_group_idx ;; % 32 -> // 128
# wrong: Y[tx] = T.get_warp_group_idx("32")

# --- shuffle_elect = get_lane_idx: T.get_lane_idx() -> T.cast(T.shuffle_elect(128), "int32")
#     ;; np.arange(256) % 32 -> (np.arange(256) % 128 == 0)
# wrong: Y[tx] = T.cast(T.shuffle_elect("all"), "int32")

# --- activemask = get_lane_idx: T.get_lane_idx() -> T.cast(T.popcount(T.activemask()), "int32")
#     ;; np.arange(256) % 32 -> 32
# wrong: Y[tx] = T.cast(T.activemask(1), "int32")

# --- shfl_sync
@T.prim_func
def exchanged(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        tx = T.get_thread_binding()
        mine = X[tx]
        Y[tx] = T.shfl_sync(mine, 5)

x = random.standard_normal(64, "float32")
of_warps = x.reshape(2, 32)
assert (tw.compile(exchanged, out_idx=-1)(x).reshape(2, 32) == of_warps[:, 5:6]).all()
# wrong: Y[tx] = T.shfl_sync(mine, 5, width=33)

# --- shfl_up = shfl_sync: shfl_sync(mine, 5) -> shfl_up(mine, 1) ;; of_warps[:, 5:6] -> of_warps[:, [0, *range(31)]]
# wrong: Y[tx] = T.shfl_up(mine, 1, width=33)

# --- shfl_down = shfl_sync: shfl_sync(mine, 5) -> shfl_down(mine, 1)
#     ;; of_warps[:, 5:6] -> of_warps[:, [*range(1, 32), 31]]
# wrong: Y[tx] = T.shfl_down(mine, 1, width=33)

# --- shfl_xor = shfl_sync: shfl_sync(mine, 5) -> shfl_xor(mine, 1)
#     ;; of_warps[:, 5:6] -> of_warps[:, np.arange(32) ^ 1]
# wrong: Y[tx] = T.shfl_xor(mine, 1, width=33)

# --- warp_reduce_sum
@T.prim_func
def over_warps(X: T.Tensor((64,), "int32"), Y: T.Tensor((64,), "int32")):
    with T.Kernel(1, threads=64):
        tx = T.get_thread_binding()
        mine = X[tx]
        Y[tx] = T.warp_reduce_sum(mine)

x = random.integers(-99, 99, 64).astype("int32")
of_warps = np.add.reduce(x.reshape(2, 32), axis=1, keepdims=True)
assert (tw.compile(over_warps, out_idx=-1)(x).reshape(2, 32) == of_warps).all()
# wrong: Y[tx] = T.warp_reduce_sum(X)

# --- warp_reduce_max = warp_reduce_sum: warp_reduce_sum -> warp_reduce_max ;; np.add -> np.maximum
# --- warp_reduce_min = warp_reduce_sum: warp_reduce_sum -> warp_reduce_min ;; np.add -> np.minimum
# --- warp_reduce_bitand = warp_reduce_sum: warp_reduce_sum -> warp_reduce_bitand ;; np.add -> np.bitwise_and
# --- warp_reduce_bitor = warp_reduce_sum: warp_reduce_sum -> warp_reduce_bitor ;; np.add -> np.bitwise_or

# --- any_sync
@T.prim_func
def asked(X: T.Tensor((64,), "int32"), Y: T.Tensor((64,), "int32")):
    with T.Kernel(1, threads=64):
        tx = T.get_thread_binding()
        mine = X[tx]
        Y[tx] = T.cast(T.any_sync(mine > 98), "int32")

x = random.integers(0, 100, 64).astype("int32")
of_warps = (x > 98).reshape(2, 32).any(axis=1, keepdims=True)
assert (tw.compile(asked, out_idx=-1)(x).reshape(2, 32) == of_warps).all()
# wrong: Y[tx] = T.cast(T.any_sync(X), "int32")

# --- all_sync = any_sync: any_sync -> all_sync ;; .any( -> .all(
# --- syncthreads_and = any_sync: any_sync -> syncthreads_and ;; .any(axis=1, keepdims=True) -> .all()
# --- syncthreads_or = any_sync: any_sync -> syncthreads_or ;; .any(axis=1, keepdims=True) -> .any()
# --- syncthreads_count = any_sync: any_sync -> syncthreads_count ;; .any(axis=1, keepdims=True) -> .sum()
# --- ballot_sync = any_sync: T.any_sync(mine > 98) -> T.popcount(T.ballot_sync(mine > 98)) ;; .any( -> .sum(
# wrong: Y[tx] = T.cast(T.ballot_sync(X), "int32")
# --- ballot = any_sync: T.any_sync(mine > 98) -> T.popcount(T.ballot(mine > 98)) ;; .any( -> .sum(
# wrong: Y[tx] = T.cast(T.ballot(X), "int32")
# --- match_any_sync = any_sync: T.any_sync(mine > 98) -> T.match_any_sync(mine - mine)
#     ;; (x > 98).reshape(2, 32).any(axis=1, keepdims=True) -> -1
# wrong: Y[tx] = T.cast(T.match_any_sync(X), "int32")
# --- match_all_sync = any_sync: T.any_sync(mine > 98) -> T.match_all_sync(mine - mine)
#     ;; (x > 98).reshape(2, 32).any(axis=1, keepdims=True) -> -1
# wrong: Y[tx] = T.cast(T.match_all_sync(X), "int32")

# --- annotate_min_blocks_per_sm
@T.prim_func
def hinted(X: T.Tensor((4, 1024), "float32"), Y: T.Tensor((4, 1024), "float32")):
    with T.Kernel(8, 4, threads=128) as (bx, by):
        T.annotate_min_blocks_per_sm(4)
        for i in T.Parallel(128):
            Y[by, bx * 128 + i] = X[by, bx * 128 + i] + 1

x = random.standard_normal((4, 1024), "float32")
assert (tw.compile(hinted, out_idx=-1)(x) == x + 1).all()
# wrong: T.annotate_min_blocks_per_sm(0)

# --- use_swizzle = annotate_min_blocks_per_sm: annotate_min_blocks_per_sm(4) -> use_swizzle(2)
# wrong: T.use_swizzle(2, order="diagonal")

# --- assume = annotate_min_blocks_per_sm: annotate_min_blocks_per_sm(4) -> assume(bx < 8)
# wrong: T.assume(X)

# --- device_assert = annotate_min_blocks_per_sm: annotate_min_blocks_per_sm(4) -> device_assert(bx < 8, "eight blocks")
# wrong: T.device_assert(X)

# --- print = annotate_min_blocks_per_sm: T.annotate_min_blocks_per_sm(4)
#     -> if bx + by + T.get_thread_binding() == 0: T.print(msg="here")
# wrong: T.print(X, msg=3)

# --- thread_return = annotate_min_blocks_per_sm: T.annotate_min_blocks_per_sm(4) -> if by > 3: T.thread_return()
# wrong: T.thread_return(1)

# --- annotate_plan
@T.prim_func
def planned(A: T.Tensor((128, 128), "float16"), B: T.Tensor((128, 128), "float16"), C: T.Tensor((128, 128), "float32")):
    with T.Kernel(1, threads=128):
        T.annotate_plan("ring a, b slots=2")
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
assert (tw.compile(planned, out_idx=-1)(a, b) == a.astype("float32") @ b.astype("float32")).all()
# wrong: T.annotate_plan(2)

# --- atomic_add
@T.prim_func
def counted(X: T.Tensor((1024,), "int32"), Y: T.Tensor((8,), "int32")):
    with T.Kernel(8, threads=128) as bx:
        for i in T.Parallel(128):
            T.atomic_add(Y[X[bx * 128 + i]], 1)

x = random.integers(0, 8, 1024).astype("int32")
y = np.zeros(8, "int32")
tw.compile(counted)(x, y)
assert (y == np.bincount(x, minlength=8)).all()
# wrong: T.atomic_add(Y, 1, return_prev=True)
# wrong: T.atomic_add(Y[0])

# --- atomic_max
@T.prim_func
def joined(X: T.Tensor((1024,), "int32"), Y: T.Tensor((8,), "int32")):
    with T.Kernel(8, threads=128) as bx:
        for i in T.Parallel(128):
            T.atomic_max(Y[bx], X[bx * 128 + i])

x = random.integers(0, 2**31, 1024).astype("int32")
y = np.full(8, 2**20, "int32")
wanted = np.maximum(y, np.maximum.reduce(x.reshape(8, 128), axis=1))
tw.compile(joined)(x, y)
assert (y == wanted).all()
# wrong: T.atomic_max(Y[bx], X[bx * 128 + i], memory_order="soon")

# --- atomic_min = atomic_max: atomic_max -> atomic_min ;; np.maximum -> np.minimum
# --- atomic_and = atomic_max: atomic_max -> atomic_and ;; np.maximum -> np.bitwise_and
# --- atomic_or = atomic_max: atomic_max -> atomic_or ;; np.maximum -> np.bitwise_or
# --- atomic_xor = atomic_max: atomic_max -> atomic_xor ;; np.maximum -> np.bitwise_xor

# --- atomic_addx2
@T.prim_func
def pairs(X: T.Tensor((1024,), "float32"), Y: T.Tensor((2,), "float32")):
    with T.Kernel(4, threads=128) as bx:
        for i in T.Parallel(128):
            T.atomic_addx2(Y[0], X[(bx * 128 + i) * 2])

x = random.integers(-9, 9, 1024).astype("float32")
y = np.zeros(2, "float32")
tw.compile(pairs)(x, y)
assert (y == x.reshape(512, 2).sum(axis=0)).all()
# wrong: T.atomic_addx2(Y[0], [1, 2, 3])

# --- atomic_addx4 = atomic_addx2: atomic_addx2 -> atomic_addx4
#     ;; (2,) -> (4,)
#     ;; * 2] -> * 4]
#     ;; T.Kernel(4 -> T.Kernel(2
#     ;; zeros(2 -> zeros(4
#     ;; (512, 2) -> (256, 4)
# wrong: T.atomic_addx4(Y[0], [1, 2, 3])

# --- atomic_exchange
@T.prim_func
def taken(X: T.Tensor((64,), "int32"), Y: T.Tensor((64,), "int32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            Y[i] = T.atomic_exchange(X[i], 0, return_prev=True)

x = random.integers(0, 99, 64).astype("int32")
before = x.copy()
assert (tw.compile(taken, out_idx=-1)(x) == before).all() and not x.any()
# wrong: Y[i] = T.atomic_exchange(X, 0, return_prev=True)

# --- atomic_cas
@T.prim_func
def first_comes(X: T.Tensor((1,), "int32"), Y: T.Tensor((64,), "int32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            Y[i] = T.atomic_cas(X[0], 0, i + 1)

x = np.zeros(1, "int32")
y = tw.compile(first_comes, out_idx=-1)(x)
assert (y == 0).sum() == 1 and 1 <= x[0] <= 64          # one of them found a zero
# wrong: Y[i] = T.atomic_cas(X, 0, i + 1)

# --- atomic_load
@T.prim_func
def through_memory(X: T.Tensor((64,), "int32"), Y: T.Tensor((64,), "int32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            T.atomic_store(Y[i], T.atomic_load(X[i], "relaxed"), "relaxed")

x = random.integers(0, 99, 64).astype("int32")
assert (tw.compile(through_memory, out_idx=-1)(x) == x).all()
# wrong: T.atomic_store(Y[i], T.atomic_load(X[i], "release"))

# --- atomic_store = atomic_load
# wrong: T.atomic_store(Y[i], T.atomic_load(X[i], "relaxed"), "acquire")

# --- loop_break
@T.prim_func
def found(X: T.Tensor((128, 16), "int32"), Y: T.Tensor((128,), "int32")):
    with T.Kernel(1, threads=128):
        tx = T.get_thread_binding()
        Y[tx] = 16
        for j in T.serial(16):
            if X[tx, j] == 0:
                Y[tx] = j
                T.loop_break()

x = random.integers(0, 9, (128, 16)).astype("int32")
wanted = np.where((x == 0).any(axis=1), (x == 0).argmax(axis=1), 16)
assert (tw.compile(found, out_idx=-1)(x) == wanted).all()
# wrong: T.loop_break(1)

# --- loop_continue
@T.prim_func
def skipped(X: T.Tensor((128, 16), "int32"), Y: T.Tensor((128,), "int32")):
    with T.Kernel(1, threads=128):
        tx = T.get_thread_binding()
        total = T.alloc_var("int32", 0)
        for j in T.serial(16):
            if X[tx, j] < 0:
                T.loop_continue()
            total += X[tx, j]
        Y[tx] = total

x = random.integers(-9, 9, (128, 16)).astype("int32")
assert (tw.compile(skipped, out_idx=-1)(x) == np.maximum(x, 0).sum(axis=1)).all()
# wrong: T.loop_continue(1)

# --- block_rank_in_cluster
@T.prim_func
def ranks(Y: T.Tensor((8,), "int32")):
    with T.Kernel(8, threads=128, cluster_dims=4) as bx:
        if T.get_thread_binding() == 0:
            Y[bx] = T.block_rank_in_cluster()

y = np.zeros(8, "int32")
tw.compile(ranks)(y)
assert (y == np.arange(8) % 4).all()
# wrong: Y[bx] = T.block_rank_in_cluster(0)

# --- get_cluster_dim = block_rank_in_cluster: T.block_rank_in_cluster() -> T.get_cluster_dim(0)
#     ;; np.arange(8) % 4 -> 4
# wrong: Y[bx] = T.get_cluster_dim(3)

# --- cluster_arrive
@T.prim_func
def swapped(X: T.Tensor((2, 128), "float32"), Y: T.Tensor((2, 128), "float32")):
    with T.Kernel(2, threads=128, cluster_dims=2) as bx:
        mine = T.alloc_shared((128,), "float32")
        other = T.alloc_shared((128,), "float32")
        T.copy(X[bx, 0], mine)
        T.copy_cluster(mine, other, dst_block=1 - bx)
        T.cluster_arrive()
        T.cluster_wait()
        T.copy(other, Y[bx, 0])

x = random.standard_normal((2, 128), "float32")
assert (tw.compile(swapped, out_idx=-1)(x) == x[::-1]).all()
# wrong: T.cluster_arrive(0)

# --- cluster_wait = cluster_arrive
# wrong: T.cluster_wait(0)

# --- cluster_arrive_relaxed = cluster_arrive: cluster_arrive -> cluster_arrive_relaxed

# --- barrier_arrive
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
# wrong: T.barrier_arrive(x)

# --- barrier_wait = barrier_arrive
# wrong: T.barrier_wait(full)

# --- mbarrier_arrive = barrier_arrive: T.barrier_arrive(full) -> T.mbarrier_arrive(full)
# wrong: T.mbarrier_arrive(x)

# --- mbarrier_wait_parity = barrier_arrive: T.barrier_wait(full, 0) -> T.mbarrier_wait_parity(full, 0)
# wrong: T.mbarrier_wait_parity(full)

# --- mbarrier_expect_tx
@T.prim_func
def by_bytes(X: T.Tensor((64, 64), "float16"), Y: T.Tensor((64, 64), "float16")):
    with T.Kernel(1, threads=128):
        tile = T.alloc_shared((64, 64), "float16")
        arrived = T.alloc_barrier([1])
        box = T.create_tma_descriptor(6, 2, X.data, 64, 64, 2, 128, 64, 64, 1, 1, 0, 0, 2, 0)
        if T.get_thread_binding() == 0:
            T.mbarrier_expect_tx(arrived, 8192)
            T.barrier_arrive(arrived)
        T.tma_load(box, arrived, T.access_ptr(tile, "w"), 0, 0, 0)
        T.barrier_wait(arrived, 0)
        T.copy(tile, Y)

x = random.standard_normal((64, 64)).astype("float16")
assert (tw.compile(by_bytes, out_idx=-1)(x) == x).all()
# wrong: T.mbarrier_expect_tx(tile, 8192)

# --- mbarrier_arrive_expect_tx = mbarrier_expect_tx: T.mbarrier_expect_tx(arrived, 8192); T.barrier_arrive(arrived)
#     -> T.mbarrier_arrive_expect_tx(arrived, 8192)
# wrong: T.mbarrier_arrive_expect_tx(tile, 8192)

# --- cp_async_barrier_noinc
@T.prim_func
def by_threads(X: T.Tensor((128,), "float32"), Y: T.Tensor((128,), "float32")):
    with T.Kernel(1, threads=128):
        x = T.alloc_shared((128,), "float32")
        arrived = T.alloc_barrier([128])
        T.async_copy(X, x)
        T.cp_async_barrier_noinc(arrived)
        T.barrier_wait(arrived, 0)
        for i in T.Parallel(128):
            Y[i] = x[127 - i]

x = random.standard_normal(128, "float32")
assert (tw.compile(by_threads, out_idx=-1)(x) == x[::-1]).all()
# wrong: T.cp_async_barrier_noinc(x)

# --- ptx_commit_group
@T.prim_func
def in_groups(X: T.Tensor((128,), "float32"), Y: T.Tensor((128,), "float32")):
    with T.Kernel(1, threads=128):
        x = T.alloc_shared((128,), "float32")
        T.async_copy(X, x)
        T.ptx_commit_group()
        T.ptx_wait_group(0)
        T.sync_threads()
        for i in T.Parallel(128):
            Y[i] = x[127 - i]

x = random.standard_normal(128, "float32")
assert (tw.compile(in_groups, out_idx=-1)(x) == x[::-1]).all()
# wrong: T.ptx_commit_group(1)

# --- sync_threads
@T.prim_func
def shared_by_all(X: T.Tensor((128,), "float32"), Y: T.Tensor((128,), "float32")):
    with T.Kernel(1, threads=128):
        x = T.alloc_shared((128,), "float32")
        tx = T.get_thread_binding()
        x[tx] = X[tx]
        T.sync_threads()
        Y[tx] = x[127 - tx]

x = random.standard_normal(128, "float32")
assert (tw.compile(shared_by_all, out_idx=-1)(x) == x[::-1]).all()
# wrong: T.sync_threads(99, 128)

# --- sync_warp = sync_threads: T.sync_threads() -> T.sync_warp(); T.sync_threads()
# wrong: T.sync_warp(1, 2)

# --- named_barrier_arrive
@T.prim_func
def named(X: T.Tensor((128,), "float32"), Y: T.Tensor((128,), "float32")):
    with T.Kernel(1, threads=256):
        x = T.alloc_shared((128,), "float32")
        with T.ws(0):
            for i in T.Parallel(128):
                x[i] = X[i]
            T.named_barrier_arrive(3, 256)
        with T.ws(1):
            T.sync_threads(3, 256)
            for i in T.Parallel(128):
                Y[i] = x[127 - i]

x = random.standard_normal(128, "float32")
assert (tw.compile(named, out_idx=-1)(x) == x[::-1]).all()
# wrong: T.named_barrier_arrive(3, 100)

# --- sync_grid
@T.prim_func
def over_all_blocks(X: T.Tensor((4, 128), "float32"), Y: T.Tensor((4, 128), "float32")):
    scratch = T.alloc_global((4, 128), "float32")
    with T.Kernel(4, threads=128) as bx:
        for i in T.Parallel(128):
            scratch[bx, i] = X[bx, i]
        T.sync_grid()
        for i in T.Parallel(128):
            Y[bx, i] = scratch[3 - bx, i]

x = random.standard_normal((4, 128), "float32")
assert (tw.compile(over_all_blocks, out_idx=-1)(x) == x[::-1]).all()
# wrong: T.sync_grid(0)

# --- sync_global = sync_grid: sync_grid -> sync_global

# --- pdl_sync
@T.prim_func
def two_kernels(X: T.Tensor((512,), "float32"), Y: T.Tensor((512,), "float32")):
    half = T.alloc_global((512,), "float32")
    with T.Kernel(4, threads=128) as bx:
        for i in T.Parallel(128):
            half[bx * 128 + i] = X[bx * 128 + i] / 2
        T.pdl_trigger()
    with T.Kernel(4, threads=128) as bx:
        T.pdl_sync()
        for i in T.Parallel(128):
            Y[bx * 128 + i] = half[511 - (bx * 128 + i)]

x = random.standard_normal(512, "float32")
assert (tw.compile(two_kernels, out_idx=-1)(x) == x[::-1] / 2).all()
# wrong: T.pdl_sync(0)

# --- pdl_trigger = pdl_sync
# wrong: T.pdl_trigger(0)

# --- fence_proxy_async
@T.prim_func
def written_by_threads(X: T.Tensor((64, 64), "float16"), Y: T.Tensor((64, 64), "float16")):
    with T.Kernel(1, threads=128):
        tile = T.alloc_shared((64, 64), "float16")
        for i, j in T.Parallel(64, 64):
            tile[i, j] = X[j, i]
        T.fence_proxy_async()
        T.sync_threads()
        T.tma_copy(tile, Y[0:64, 0:64])
        T.tma_store_wait(0)

x = random.standard_normal((64, 64)).astype("float16")
assert (tw.compile(written_by_threads, out_idx=-1)(x) == x.T).all()
# wrong: T.fence_proxy_async(0)

# --- tma_store_arrive = fence_proxy_async: T.tma_store_wait(0) -> T.tma_store_arrive(); T.tma_store_wait(0)
# wrong: T.tma_store_arrive(0)

# --- set_max_nreg
@T.prim_func
def fewer_registers(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=256):
        x = T.alloc_shared((64,), "float32")
        full = T.alloc_barrier([128])
        with T.ws(0):
            T.set_max_nreg(40)
            for i in T.Parallel(64):
                x[i] = X[i] * 2
            T.barrier_arrive(full)
        with T.ws(1):
            T.set_max_nreg(232)
            T.barrier_wait(full, 0)
            for i in T.Parallel(64):
                Y[i] = x[i]

x = random.standard_normal(64, "float32")
assert (tw.compile(fewer_registers, out_idx=-1)(x) == 2 * x).all()
# wrong: T.set_max_nreg(41)

# --- dec_max_nreg = set_max_nreg: set_max_nreg(40) -> dec_max_nreg(40) ;; set_max_nreg(232) -> inc_max_nreg(232)
# wrong: T.dec_max_nreg(41)

# --- inc_max_nreg = set_max_nreg: set_max_nreg(40) -> dec_max_nreg(40) ;; set_max_nreg(232) -> inc_max_nreg(232)
# wrong: T.inc_max_nreg(41)

# --- load_matrix
@T.prim_func
def of_lanes(X: T.Tensor((8, 8), "float16"), Y: T.Tensor((32, 2), "float16")):
    with T.Kernel(1, threads=32):
        tx = T.get_thread_binding()
        rows = T.alloc_shared((8, 8), "float16")
        own = T.alloc_local((2,), "float16")
        T.copy(X, rows)
        T.load_matrix(rows[tx % 8, 0], own[0], 1)
        Y[tx, 0] = own[0]
        Y[tx, 1] = own[1]

x = random.standard_normal((8, 8), "float32").astype("float16")
assert (tw.compile(of_lanes, out_idx=-1)(x).reshape(8, 8) == x).all()  # lane l has two elements of row l // 4
# wrong: T.load_matrix(rows[tx % 8, 0], own[0], 3)

# --- warp_mma
@T.prim_func
def of_a_warp(A: T.Tensor((16, 16), "float16"), B: T.Tensor((16, 8), "float16"), C: T.Tensor((16, 8), "float32")):
    with T.Kernel(1, threads=32):
        tx = T.get_thread_binding()
        a = T.alloc_local((8,), "float16")
        b = T.alloc_local((4,), "float16")
        c = T.alloc_local((4,), "float32")
        for i in T.unroll(8):
            a[i] = A[tx // 4 + i // 2 % 2 * 8, tx % 4 * 2 + i // 4 * 8 + i % 2]
        for i in T.unroll(4):
            b[i] = B[tx % 4 * 2 + i // 2 * 8 + i % 2, tx // 4]
            c[i] = 0.0
        T.warp_mma(a[0], b[0], c[0], 16)
        for i in T.unroll(4):
            C[tx // 4 + i // 2 * 8, tx % 4 * 2 + i % 2] = c[i]

a = random.integers(-3, 4, (16, 16)).astype("float16")
b = random.integers(-3, 4, (16, 8)).astype("float16")
assert (tw.compile(of_a_warp, out_idx=-1)(a, b) == a.astype("float32") @ b.astype("float32")).all()
# wrong: T.warp_mma(a[0], b[0], c[0], 12)
