"""Blocks of a cluster: copies to several of them, arrivals at each other's mbarriers, their numbers."""
import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T

SIMULATOR = "simulator -arch=sm_90a"


def test_the_lowest_block_of_the_mask_copies_for_all_of_it():
    @T.prim_func
    def main(A: T.Tensor((64, 256), "float16"), B: T.Tensor((64, 256), "float16")):
        with T.ClusterKernel(4, 2, threads=128, cluster_dims=(4, 1, 1)) as (bx, by):
            S = T.alloc_shared((32, 64), "float16")
            T.copy_cluster(A[by * 32, bx * 64], S, cluster_mask=0b0011)
            T.copy(S, B[by * 32, bx * 64])

    a, b = np.random.default_rng(1).random((64, 256)).astype("float16"), np.empty((64, 256), "float16")
    for target in ("interpreter", SIMULATOR):
        tw.compile(main, target=target)(a, b)
        assert (b[:, 64:128] == a[:, :64]).all()
        b[:, 64:128] = a[:, 64:128]
        assert (b == a).all()


def test_a_ring_of_two_blocks():
    """Both want the same tiles: the first brings them, and gets the slot back from both."""

    @T.prim_func
    def main(A: T.Tensor((128, 64), "float32"), B: T.Tensor((2, 128, 64), "float32")):
        with T.Kernel(2, threads=256, cluster_dims=2) as bx:
            S = T.alloc_shared((32, 64), "float32")
            F = T.alloc_fragment((32, 64), "float32")
            full, empty = T.alloc_cluster_barrier(128), T.alloc_cluster_barrier(2)
            rank, tx = T.block_rank_in_cluster(), T.get_thread_binding(0)
            if tx < 128:
                for k in range(4):
                    if rank == 0:
                        T.mbarrier_wait_parity(empty, (k + 1) % 2)
                    T.mbarrier_wait_parity(full, (k + 1) % 2)
                    T.tma_copy(A[k * 32, 0], S, barrier=full, cluster_mask=0b11)
                    T.mbarrier_arrive(full)
            else:
                for k in range(4):
                    T.mbarrier_wait_parity(full, k % 2)
                    T.copy(S, F)
                    T.sync_threads(1, 128)
                    if tx == 128:
                        T.mbarrier_arrive(empty, 0)
                    T.copy(F, B[rank, k * 32 : k * 32 + 32, :])
            T.cluster_arrive()
            T.cluster_wait()

    a, b = np.random.default_rng(1).random((128, 64), dtype="float32"), np.empty((2, 128, 64), "float32")
    tw.compile(main, target=SIMULATOR)(a, b)
    assert (b[0] == a).all() and (b[1] == a).all()


def test_numbers_of_a_cluster():
    seen = {}

    @T.prim_func
    def main(B: T.Tensor((4, 4, 3), "int32")):
        with T.Kernel(4, 4, threads=32, cluster_dims=(2, 2)) as (bx, by):
            seen.update(dims=T.get_cluster_dims(), size=T.get_cluster_size(), extents=T.get_cluster_extents())
            B[by, bx, 0] = T.block_rank_in_cluster()
            B[by, bx, 1] = T.get_cluster_id(0)
            B[by, bx, 2] = T.get_cluster_ids()[1]

    b = np.empty((4, 4, 3), "int32")
    for target in ("interpreter", SIMULATOR):
        tw.compile(main, target=target)(b)
        y, x = np.mgrid[0:4, 0:4]
        assert (b[..., 0] == x % 2 + y % 2 * 2).all() and (b[..., 1] == x // 2).all() and (b[..., 2] == y // 2).all()
    assert seen == {"dims": [2, 2, 1], "size": 4, "extents": [2, 2, 1]}


def sent(n, told, source="shared", result="float32"):
    """Block 0 sends a row to block 1, which is told by a barrier or meets it."""

    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), result)):
        with T.ClusterKernel(2, threads=128, cluster_dims=(2, 1, 1)) as pid:
            src = T.alloc_shared((n,), "float32")
            if source == "fragment":
                src = T.alloc_fragment((n,), "float32")
            dst = T.alloc_shared((n,), result)
            bar = T.alloc_cluster_barrier([1])
            T.fill(dst, 0.0)
            T.cluster_sync()
            if pid == 0:
                T.copy(A, src)
                if told:
                    T.copy_cluster(src, dst, dst_block=1, remote_barrier=bar[0])
                else:
                    T.copy_cluster(src, dst, dst_block=1)
            if not told:
                T.cluster_sync()
            if pid == 1:
                if told:
                    T.mbarrier_wait_parity(bar[0], 0)
                T.copy(dst, B)

    return main


@pytest.mark.parametrize("target", ["interpreter", SIMULATOR])
@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize("n", [127, 128])
@pytest.mark.parametrize("source, result", [("shared", "float32"), ("fragment", "float16")])
def test_a_block_sends_to_another(target, told, n, source, result):
    a, b = np.random.default_rng(1).random(n, dtype="float32"), np.zeros(n, result)
    tw.compile(sent(n, told, source, result), target=target)(a, b)
    assert (b == a.astype(result)).all()


@pytest.mark.parametrize("target", ["interpreter", SIMULATOR])
def test_slices_are_sent(target):
    @T.prim_func
    def main(A: T.Tensor((4, 31), "float32"), B: T.Tensor((2, 4, 31), "float32")):
        with T.ClusterKernel(2, threads=128, cluster_dims=(2, 1, 1)) as pid:
            src, dst = T.alloc_shared((4, 64), "float32"), T.alloc_shared((4, 64), "float32")
            bar = T.alloc_cluster_barrier([1])
            for i, j in T.Parallel(4, 31):
                src[i, j] = A[i, j] + pid
            T.cluster_sync()
            # Each block sends to the other.
            T.copy_cluster(src[0:4, 0:31], dst[0:4, 0:31], dst_block=1 - pid, remote_barrier=bar[0])
            T.mbarrier_wait_parity(bar[0], 0)
            for i, j in T.Parallel(4, 31):
                B[pid, i, j] = dst[i, j]

    a, b = np.random.default_rng(1).random((4, 31), dtype="float32"), np.zeros((2, 4, 31), "float32")
    tw.compile(main, target=target)(a, b)
    assert (b[0] == a + np.float32(1)).all() and (b[1] == a).all()


def refusal(**options):
    with pytest.raises(tw.CompileError) as caught:

        @T.prim_func
        def main(A: T.Tensor((64,), "float32")):
            with T.ClusterKernel(2, threads=128, cluster_dims=options.pop("cluster", (2, 1, 1))) as pid:
                src, dst = T.alloc_shared((64,), "float32"), T.alloc_fragment((64,), "float32")
                bar = T.alloc_cluster_barrier([1])
                if options.pop("to_shared", True):
                    dst = T.alloc_shared((64,), "float32")
                if options.pop("told", False):
                    options["remote_barrier"] = bar[0]
                T.copy_cluster(A if options.pop("from_global", False) else src, dst, **options)

        tw.compile(main)
    return str(caught.value).splitlines()[0]


def test_what_cannot_be_sent():
    assert "TW1088 build: copy_cluster to block 2 of a cluster of 2" in refusal(dst_block=2)
    assert "TW1088 build: copy_cluster to block 1 of a cluster of 1" in refusal(dst_block=1, cluster=(1, 1, 1))
    assert "TW1088 build: copy_cluster to 'dst', a fragment buffer" in refusal(dst_block=1, to_shared=False)
    assert "TW1088 build: copy_cluster from 'A', a global buffer" in refusal(dst_block=1, from_global=True)
    assert "copy_cluster: both dst_block and cluster_mask" in refusal(dst_block=1, cluster_mask=3)
    assert "copy_cluster: a remote_barrier without dst_block" in refusal(cluster_mask=3, told=True, from_global=True)


def _told_to_all(begins_by_meeting, dtype):
    @T.prim_func
    def main(A: T.Tensor((4, 32), dtype), B: T.Tensor((4, 4, 32), dtype)):
        with T.Kernel(4, threads=128, cluster_dims=4) as bx:
            mine = T.alloc_shared((32,), dtype)
            all = T.alloc_shared((4, 32), dtype)
            full = T.alloc_barrier([4])
            if begins_by_meeting:
                T.cluster_arrive()
            T.copy(A[bx, 0], mine)
            if begins_by_meeting:
                T.cluster_wait()
            T.copy_cluster(mine, all[bx, :], dst_block=0, remote_barrier=full)
            T.copy_cluster(mine, all[bx, :], dst_block=1, remote_barrier=full)
            T.copy_cluster(mine, all[bx, :], dst_block=2, remote_barrier=full)
            T.copy_cluster(mine, all[bx, :], dst_block=3, remote_barrier=full)
            T.barrier_wait(full, 0)
            T.copy(all, B[bx, :, :])

    return main


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("meet", [False, True])
def test_blocks_that_tell_each_other_meet_once(meet, dtype):
    """Barriers are there when all have come by the program's own barrier of the cluster; copies are written before any is told of,
    or tell their bytes."""
    main = _told_to_all(meet, dtype)
    a, b = np.random.default_rng(1).random((4, 32), dtype="float32").astype(dtype), np.empty((4, 4, 32), dtype)
    for target in ("interpreter", SIMULATOR):
        b[:] = 0
        tw.compile(main, target=target)(a, b)
        assert (b == a[None]).all()
    text = tw.compile(main, target="interpreter").get_kernel_source(arch="sm_90a")
    text = text[text.index("__launch_bounds__") :]
    assert ("tw_sync_cluster();" in text) != meet and ("tw_arrive_cluster_first();" in text) == ("tw_wait_cluster();" in text) == meet
    by_bytes = dtype == "float32"
    assert text.count("tw_fence_cluster();") == (not by_bytes) and text.count("tw_arrive_behind_fence(") == (0 if by_bytes else 4)
    assert text.count("tw_store_to_peer(") == text.count("tw_arrive_expect_at(") == (4 if by_bytes else 0)
    assert text.count("__syncthreads();") == 1


def test_an_arrival_behind_what_a_block_wrote_tells_of_it():
    """Only a block that has written nothing arrives without the fence."""

    @T.prim_func
    def main(A: T.Tensor((2, 64), "float32"), B: T.Tensor((2, 64), "float32")):
        with T.Kernel(2, threads=64, cluster_dims=2) as bx:
            mine = T.alloc_shared((64,), "float32")
            there = T.alloc_shared((64,), "float32")
            T.copy(A[bx, 0], mine)
            T.cluster_arrive()
            T.cluster_wait()
            T.copy_cluster(mine, there, dst_block=1 - bx)
            T.cluster_sync()
            T.copy(there, B[bx, 0])

    text = tw.compile(main, target="interpreter").get_kernel_source(arch="sm_90a")
    assert "tw_arrive_cluster();" in text and "tw_arrive_cluster_first" not in text
