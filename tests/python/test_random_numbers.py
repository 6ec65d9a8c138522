"""Random numbers in kernels: Philox is cuRAND's, number for number, and every engine draws the same."""
import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T

GENERATORS = ["curandStatePhilox4_32_10_t", "curandStateXORWOW_t", "curandStateMRG32k3a_t"]


def philox(counter, key):
    """Ten rounds on a counter of four words, as the authors of the generator define them."""
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [b >> 32 ^ c[1] ^ k[0], b & 0xFFFFFFFF, a >> 32 ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def draws(generator, seed, seq, off, count, engine="cpu", threads=1):
    @T.prim_func
    def main(A: T.Tensor((threads, count), "uint32")):
        with T.Kernel(1, threads=threads):
            t = T.get_thread_binding()
            T.rng_init(seed, seq, off + t, generator=generator)
            for i in T.serial(count):
                A[t, i] = T.rng_rand()

    a = np.zeros((threads, count), "uint32")
    tw.compile(main, engine=engine)(a)
    return a


@pytest.mark.parametrize("seed, seq, off", [(0, 0, 0), (42, 0, 5), (0x123456789ABCDEF0, 7, 2**34 + 3), (1, 2**40, 8)])
def test_philox_is_curands(seed, seq, off):
    assert philox([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]  # the authors' known answer
    key, quad = [seed & 0xFFFFFFFF, seed >> 32], off // 4
    words = []
    for q in range(quad, quad + 5):
        words += philox([q & 0xFFFFFFFF, q >> 32, seq & 0xFFFFFFFF, seq >> 32], key)
    assert draws(GENERATORS[0], seed, seq, off, 16)[0].tolist() == words[off % 4 : off % 4 + 16]


@pytest.mark.parametrize("generator", GENERATORS)
def test_offsets_skip_and_engines_agree(generator):
    drawn = draws(generator, 123, 0, 0, 12, threads=4)
    assert all((drawn[t, :8] == drawn[0, t : t + 8]).all() for t in range(4))
    assert (draws(generator, 123, 0, 0, 12, "interpreter", 4) == drawn).all()
    assert len(set(drawn[0].tolist())) == 12


@pytest.mark.parametrize("generator", GENERATORS)
def test_distributions(generator):
    @T.prim_func
    def main(U: T.Tensor((4000,), "float32"), N: T.Tensor((4000,), "float32"), V: T.Tensor((4000,), "float64"), M: T.Tensor((4000,), "float64")):
        with T.Kernel(1, threads=1):
            T.rng_init(5, 0, 0, generator=generator)
            for i in T.serial(4000):
                U[i] = T.rng_rand_float()
                N[i] = T.rng_rand_float(dist="normal")
                V[i] = T.rng_rand_float(bit=64)
                M[i] = T.rng_rand_float(bit=64, dist="normal")

    u, n, v, m = np.zeros(4000, "float32"), np.zeros(4000, "float32"), np.zeros(4000), np.zeros(4000)
    tw.compile(main, engine="cpu")(u, n, v, m)
    for uniform in (u, v):
        assert 0 < uniform.min() and uniform.max() <= 1 and abs(uniform.mean() - 0.5) < 0.03
        assert abs(np.corrcoef(uniform[1:], uniform[:-1])[0, 1]) < 0.06
    for normal in (n, m):
        assert abs(normal.mean()) < 0.07 and abs(normal.std() - 1) < 0.05 and abs((normal**3).mean()) < 0.25


def test_threads_have_sequences_of_their_own():
    @T.prim_func
    def main(A: T.Tensor((2, 32), "uint32")):
        with T.Kernel(2, threads=32) as b:
            T.rng_init(9)
            for i in T.Parallel(32):
                A[b, i] = T.rng_rand()

    a = np.zeros((2, 32), "uint32")
    tw.compile(main, engine="interpreter")(a)
    assert a.ravel().tolist() == [philox([0, 0, t, 0], [9, 0])[0] for t in range(64)]


def test_mistakes():
    def program(call):
        @T.prim_func
        def main(A: T.Tensor((1,), "uint32")):
            with T.Kernel(1, threads=1):
                call()
                A[0] = T.rng_rand()

    for call, code in (
        (lambda: None, "TW1077"),
        (lambda: T.rng_init(1, generator="none"), "TW1080"),
        (lambda: T.rng_init(1, 3, generator=GENERATORS[1]), "TW1080"),
        (lambda: (T.rng_init(1), T.rng_rand_float(bit=16)), "TW1080"),
    ):
        with pytest.raises(tw.CompileError, match=code):
            program(call)


def test_the_device_compiles_them():
    from tilewright import _native

    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float16"), C: T.Tensor((64,), "uint64"), D: T.Tensor((64,), "int8")):
        with T.Kernel(2, threads=32) as b:
            t = T.get_thread_binding()
            T.rng_init(1)
            A[t] = T.rng_rand_float(dist="normal")
            T.sync_grid()
            B[t] = T.call_extern(T.float16, "__float2half_rz", A[63 - t])
            C[t] = T.mulhi(C[t], C[t + 32]) + T.brev(C[t])
            D[t] = T.brev(D[t])

    kernel = _native.Kernel(main.program, "cuda", "sm_90a", [])
    assert "cooperative_groups::this_grid().sync();" in kernel.source
