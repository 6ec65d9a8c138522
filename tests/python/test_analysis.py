"""What tilelang.tools.Analyzer says of a product."""
import pytest
import tilewright.language as T
from tilewright.analysis import Analyzer
from tilewright.carver import CUDA


@pytest.mark.parametrize("M, N, K", [(256, 512, 128), (1024, 1024, 1024)])
def test_the_cost_of_a_product(M, N, K):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((N, K), "float16"), C: T.Tensor((M, N), "float16")):
        with T.Kernel(N // 128, M // 128, threads=128) as (bx, by):
            A_shared, B_shared = T.alloc_shared((128, 32), "float16"), T.alloc_shared((128, 32), "float16")
            acc = T.alloc_fragment((128, 128), "float32")
            T.clear(acc)
            for k in T.Pipelined(K // 32, num_stages=3):
                T.copy(A[by * 128, k * 32], A_shared)
                T.copy(B[bx * 128, k * 32], B_shared)
                T.gemm(A_shared, B_shared, acc, transpose_B=True)
            T.copy(acc, C[by * 128, bx * 128])

    result = Analyzer.analysis(main, CUDA("cuda"))
    assert result.total_flops == 2 * M * N * K
    assert result.total_global_bytes == 2 * (M * K * (N // 128) + N * K * (M // 128) + M * N)
    assert result.estimated_time > 0 and result.expected_tflops > 100 and 1000 < result.expected_bandwidth_GBps < 10000
    assert "total_flops" in repr(result)
    again = Analyzer(main, CUDA("cuda")).ir_pass().calculate()
    assert vars(again) == vars(result)
