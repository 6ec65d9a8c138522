"""autotune: candidates are compiled together, checked, measured on tensors of their own, and noted."""
import json
import os
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import tilewright as tw  # noqa: E402
import tilewright.language as T  # noqa: E402
from engines import every_engine  # noqa: E402
from tilewright.tuner import AutoTuner, autotune, set_autotune_inputs  # noqa: E402

FAST = {"warmup": 1, "rep": 1}


def make(configs, wrong=(), **options):
    """A tuned factory of y = 2 x; configurations of `wrong` add 1."""

    @autotune(configs=configs, **{**FAST, **options})
    @tw.jit(out_idx=-1, engine="interpreter")
    def doubled(N, block=32):
        extra = 1 if block in wrong else 0

        @T.prim_func
        def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
            with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
                for i in T.Parallel(block):
                    B[bx * block + i] = A[bx * block + i] * 2 + extra

        return main

    return doubled


def test_configurations_of_a_function_that_takes_the_arguments_as_two_tuples():
    """As older programs have it; one that takes them as the kernel does gets them so."""
    asked = []

    def older(args, kwargs):
        asked.append((args, kwargs))
        return [{"block": args[0] // 2}]

    tuned = make(older)
    assert tuned(64).config == {"block": 32}
    assert asked == [((64,), ())]
    assert make(lambda N: [{"block": N // 4}])(64).config == {"block": 16}


def blocks(*values):
    return [{"block": b} for b in values]


def test_the_best_is_right_and_known():
    tuned = make(blocks(8, 16, 32), ref_prog=lambda a: a * 2)
    best = tuned(64)
    x = torch.randn(64)
    assert torch.equal(best(x), x * 2) and best.config in blocks(8, 16, 32) and best.latency > 0 and best.ref_latency > 0
    assert tuned(64) is best and tuned(128) is not best
    assert tuned(64, block=16).config in (None, {"block": 16})  # a tunable argument given: no tuning


def test_wrong_candidates_are_left_out_by_a_reference():
    best = make(blocks(8, 16, 32), wrong=(8, 32), ref_prog=lambda a: a * 2)(64)
    assert best.config == {"block": 16}
    with pytest.raises(tw.TilewrightError, match="no configuration works"):
        make(blocks(8), wrong=(8,), ref_prog=lambda a: a * 2)(64)


def test_without_a_reference_most_decide():
    with pytest.warns(UserWarning, match=r"compute different results; most agree with .*, and these do not: \[{'block': 8}\]"):
        best = make(blocks(8, 16, 32), wrong=(8,))(64)
    assert best.config in blocks(16, 32)
    assert make(blocks(8, 16), wrong=(8, 16), skip_check=True)(64).config in blocks(8, 16)


def test_outputs_are_isolated():
    """Candidates that read what they write do not see what the one before wrote."""
    seen = []

    def reference(a):
        seen.append(a.clone())
        a += 1

    @autotune(configs=blocks(8, 16), ref_prog=reference, **FAST)
    @tw.jit(engine="interpreter")
    def bumped(N, block=8):
        @T.prim_func
        def main(A: T.Tensor((N,), "float32")):
            with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
                for i in T.Parallel(block):
                    A[bx * block + i] = A[bx * block + i] + 1

        return main

    x = torch.zeros(32)
    with set_autotune_inputs(x):
        assert bumped(32).config in blocks(8, 16)
    assert torch.equal(x, torch.zeros(32)) and torch.equal(seen[0], torch.zeros(32))


def test_outputs_that_are_not_written_whole():
    """What a candidate leaves as it was is equal in all of them; types that have no arithmetic are no hindrance."""

    @autotune(configs=blocks(8, 16), **FAST)
    @tw.jit(out_idx=[1, 2], engine="interpreter")
    def partly(block=8):
        @T.prim_func
        def main(A: T.Tensor((32,), "float32"), B: T.Tensor((32,), "float32"), C: T.Tensor((32,), "float8_e4m3fn")):
            with T.Kernel(16 // block, threads=32) as bx:
                for i in T.Parallel(block):
                    B[bx * block + i] = A[bx * block + i]
                    C[bx * block + i] = A[bx * block + i]

        return main

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert partly().config in blocks(8, 16)


def test_eager_functions_are_measured_on_the_tensors_of_the_call():
    @autotune(configs=blocks(16, 32), **FAST)
    @tw.jit(engine="interpreter")
    def doubled(A, block: int = 16):
        N = T.const("N")
        A: T.Tensor((N,), "float32")
        B = T.empty((N,), "float32")
        with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i] * 2
        return B

    for n in (64, 96):
        for _ in range(2):
            x = torch.randn(n)
            assert torch.equal(doubled(x), x * 2)
    assert len(doubled.best) == 2


def test_log_is_gone_on_from(tmp_path):
    log = tmp_path / "tuning.json"
    first = make(blocks(8, 16, 7), wrong=(7,), ref_prog=lambda a: a * 2, log=log)(64)
    records = [json.loads(line) for line in log.read_text().splitlines()]
    assert [r["config"] for r in records] == blocks(8, 16, 7) and "differ in" in records[2]["error"]
    assert records[0]["kernel"] == "doubled" and records[0]["latency"] > 0
    # As after a stop: one is unknown, and the last line is not whole. What was measured is not measured again.
    records[1]["latency"] = 1e-9
    log.write_text("".join(json.dumps(r) + "\n" for r in records[1:]) + '{"key": "ab')
    again = make(blocks(8, 16, 7), wrong=(7,), ref_prog=lambda a: a * 2, log=log)(64)
    assert again.latency == 1e-9 and again.config == {"block": 16} and first.latency != again.latency
    assert len(log.read_text().splitlines()) == 3


def test_the_models_best_come_first_and_so_many_are_compiled(tmp_path):
    """On a model of a GPU small blocks are slow: a launch of many that do little."""
    from tilewright import cost

    tried = tmp_path / "tuning.json"
    best = make(blocks(1, 2, 64, 4, 256, 8), machine="H200", compiles=2, log=tried)(1 << 16)
    records = [json.loads(line)["config"] for line in tried.read_text().splitlines()]
    assert sorted(r["block"] for r in records) == [64, 256] and best.config in records
    times = [cost.predict(make(blocks(1)).function(1 << 16, block=b), "H200").us for b in (r["block"] for r in records)]
    assert times == sorted(times)
    untouched = tmp_path / "all.json"
    make(blocks(1, 2, 64), log=untouched)(64)
    assert [json.loads(line)["config"]["block"] for line in untouched.read_text().splitlines()] == [1, 2, 64]
    with pytest.raises(ValueError, match="autotune with compiles=0"):
        make(blocks(1, 2), compiles=0)(64)
    with pytest.raises(ValueError, match="there is no machine 'H999'"):
        make(blocks(1, 2), machine="H999")(64)


def test_a_tuner_of_programs_asks_the_model_too():
    def factory(block):
        @T.prim_func
        def main(A: T.Tensor((1 << 16,), "float32"), B: T.Tensor((1 << 16,), "float32")):
            with T.Kernel((1 << 16) // block, threads=32) as bx:
                for i in T.Parallel(block):
                    B[bx * block + i] = A[bx * block + i]

        return main

    tuner = AutoTuner.from_kernel(factory, blocks(1, 2, 128)).set_compile_args(out_idx=-1).set_profile_args(machine="H100", compiles=1)
    assert tuner.run(warmup=1, rep=1).config == {"block": 128}


def test_dynamic_shapes_need_tensors():
    n = T.dynamic("n")

    @autotune(configs=blocks(8), **FAST)
    @tw.jit(out_idx=-1, engine="interpreter")
    def doubled(block=8):
        @T.prim_func
        def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
            with T.Kernel(T.ceildiv(n, block), threads=32) as bx:
                for i in T.Parallel(block):
                    B[bx * block + i] = A[bx * block + i] * 2

        return main

    with pytest.raises(ValueError, match="set_autotune_inputs"):
        doubled()
    with set_autotune_inputs([torch.ones(8)]):
        assert doubled().config == {"block": 8}


def test_values_that_share_a_choice():
    @autotune(configs=blocks(8, 16), do_not_specialize=["N"], **FAST)
    @tw.jit(out_idx=-1, engine="interpreter")
    def doubled(N, factor, block=8):
        @T.prim_func
        def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
            with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
                for i in T.Parallel(block):
                    B[bx * block + i] = A[bx * block + i] * factor

        return main

    first, second = doubled(32, 2.0), doubled(N=64, factor=2.0)
    assert len(doubled.best) == 1 and first.config == second.config and second.params[0].shape == [64]
    assert torch.equal(second(torch.ones(64)), torch.full((64,), 2.0))
    doubled(32, 3.0)
    assert len(doubled.best) == 2
    with pytest.raises(ValueError, match=r"autotune has no option 'warm_up'\n(?s:.*)the nearest it has: warmup"):
        autotune(configs=blocks(8), warm_up=3)
    with pytest.raises(ValueError, match="set_profile_args has no option 'reps'"):
        AutoTuner.from_kernel(doubled.function, blocks(8)).set_profile_args(reps=3, timeout=4)
    with pytest.raises(ValueError, match=r"has no parameter 'M', which do_not_specialize names"):
        autotune(configs=blocks(8), do_not_specialize="M")(doubled.function)


@pytest.mark.parametrize("positional", (False, True))
def test_a_tunable_argument_that_shares_a_choice_is_only_where_the_search_starts(positional):
    @tw.jit(out_idx=-1, engine="interpreter")
    def doubled(N, block, threads=32):
        @T.prim_func
        def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
            with T.Kernel(T.ceildiv(N, block), threads=threads) as bx:
                for i in T.Parallel(block):
                    B[bx * block + i] = A[bx * block + i] * 2

        return main

    tuned = autotune(configs=blocks(8, 16), do_not_specialize=["block", "threads"], **FAST)(doubled)
    kernel = tuned(32, 4, 64) if positional else tuned(N=32, block=4, threads=64)
    assert kernel.config in blocks(8, 16) and kernel.latency > 0
    assert torch.equal(kernel(torch.ones(32)), torch.full((32,), 2.0))
    assert tuned(32, block=1).config == kernel.config and len(tuned.best) == 1
    assert autotune(configs=blocks(8, 16), **FAST)(doubled)(32, block=4).config is None


def test_numbers_need_to_be_given():
    @autotune(configs=blocks(8), **FAST)
    @tw.jit(engine="interpreter")
    def added(block=8):
        @T.prim_func
        def main(A: T.Tensor((32,), "float32"), s: T.float32):
            with T.Kernel(32 // block, threads=32) as bx:
                for i in T.Parallel(block):
                    A[bx * block + i] = A[bx * block + i] + s

        return main

    with pytest.raises(ValueError, match="set_autotune_inputs"):
        added()
    with set_autotune_inputs(torch.zeros(32), 0.5):
        kernel = added()
    a = torch.zeros(32)
    kernel(a, 0.5)
    assert torch.equal(a, torch.full((32,), 0.5))


def test_dimensions_of_the_call_can_be_measured():
    m, n = T.dynamic("m, n")

    @T.prim_func
    def main(A: T.Tensor((m, n), "float32"), B: T.Tensor((m,), "float32")):
        with T.Kernel(m, threads=32) as bx:
            B[bx] = A[bx, 0]

    @T.prim_func
    def fixed(A: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32):
            A[0] = 1

    profiler = tw.compile(main, out_idx=-1, engine="interpreter").get_profiler()
    assert profiler.do_bench(warmup=1, rep=1, dynamic_symbolic_constraints={"m": 8, "n": 4}) > 0
    assert profiler.report(warmup=1, rep=1, dynamic_symbolic_constraints={"m": np.int64(8), "n": 4})
    with pytest.raises(ValueError, match=r"the shape \(8, n\) of 'A' is known only at the call"):
        profiler.do_bench(dynamic_symbolic_constraints={"m": 8})
    for wrong, text, help in (({"m": 8, "k": 4}, "'main' has no dimension 'k' that only a call knows", "it has m, n"), ({3: 4}, "no dimension 3", "it has m, n"),
                              ({"m": -8, "n": 4}, "m is -8", "it is a number of elements"), ({"m": 8.0}, "m is 8.0", "elements"), ({"m": True}, "m is True", "elements"),
                              ({"m": "8"}, "m is '8'", "elements"), ([("m", 8)], r"dynamic_symbolic_constraints is \[\('m', 8\)\]", "it is a dict"),
                              (8, "dynamic_symbolic_constraints is 8", "it is a dict")):  # fmt: skip
        for inputs in (None, [np.zeros((8, 4), "float32")]):
            with pytest.raises(tw.CompileError, match=text) as caught:
                profiler.do_bench(input_tensors=inputs, dynamic_symbolic_constraints=wrong)
            assert help in caught.value.help and caught.value.file == __file__
    with pytest.raises(tw.CompileError, match="has no dimension 'm'") as caught:
        tw.compile(fixed, engine="interpreter").get_profiler().do_bench(dynamic_symbolic_constraints={"m": 8})
    assert caught.value.help == "all of its dimensions are numbers"


def test_auto_tuner():
    def factory(block):
        @T.prim_func
        def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
            with T.Kernel(64 // block, threads=32) as bx:
                for i in T.Parallel(block):
                    B[bx * block + i] = A[bx * block + i]

        return main

    tuner = AutoTuner.from_kernel(factory, blocks(16, 32)).set_compile_args(out_idx=-1).set_profile_args(ref_prog=lambda a: a)
    best = tuner.run(warmup=1, rep=1)
    assert best.config in blocks(16, 32) and best.kernel is best and best.func.params[0].name == "A" and best.libcode


def test_progress_is_shown(capfd, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_PROGRESS", "1")
    make(blocks(8, 16))(64)
    lines = capfd.readouterr().err.splitlines()
    assert lines[0].startswith("compiling doubled [....") and " 2/2 " in lines[2]
    assert lines[3].startswith("tuning doubled [") and "best" in lines[5] and lines[5].startswith("tuning doubled [####")
    monkeypatch.setenv("TILEWRIGHT_PROGRESS", "0")
    make(blocks(8, 16))(64)
    tw.par_compile([make(blocks(8)).get_tir(64)] * 2, engine="interpreter")
    assert not capfd.readouterr().err


def test_inputs_are_where_the_engine_reads_them(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert all(t.device.type == "cpu" for t in make(blocks(32))(64, block=32).get_profiler()._inputs())


def test_backends_of_do_bench():
    kernel = make(blocks(32))(64, block=32)
    for backend in ("event", "cupti", "cudagraph", "wall"):
        assert kernel.get_profiler().do_bench(warmup=1, rep=1, backend=backend) > 0
    with pytest.raises(ValueError, match=r"TW1080 build: there is no backend 'clock'[\s\S]*help: it is one of event, cupti, cudagraph, wall"):
        kernel.get_profiler().do_bench(backend="clock")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_backends_of_do_bench_on_a_device():
    from tilewright.profiler import do_bench

    a = torch.randn(4096, 4096, device="cuda", dtype=torch.float16)
    times = {b: do_bench(lambda: a @ a, backend=b) for b in ("event", "cupti", "cudagraph")}
    print(times)
    assert max(times.values()) < 1.5 * min(times.values())
    small = torch.ones(8, device="cuda")
    for backend in times:  # budgets are of what a call takes, not of its kernel alone
        calls, begin = [], time.monotonic()
        assert 0 < do_bench(lambda: calls.append(small.add_(1)), backend=backend) < 0.05
        assert len(calls) < 20000 and time.monotonic() - begin < 10


def test_inputs_are_asked_for_without_the_outputs():
    """supply_prog hears of the parameters that a call gives, wherever the one stands that the kernel makes."""
    numpy = pytest.importorskip("numpy")
    asked = []

    def supply(params):
        asked.append([(p.name, list(p.shape), str(p.dtype)) for p in params])
        return [numpy.ones(16, "float32"), numpy.arange(16, dtype="int32")]

    @autotune(configs=[{"block": 8}, {"block": 16}], warmup=1, rep=1, supply_prog=supply)
    @tw.jit(out_idx=[1], engine="interpreter")
    def taken(block=8):
        @T.prim_func
        def main(A: T.Tensor((16,), "float32"), B: T.Tensor((16,), "float32"), I: T.Tensor((16,), "int32")):
            with T.Kernel(16 // block, threads=32) as bx:
                for i in T.Parallel(block):
                    B[bx * block + i] = A[I[bx * block + i]]

        return main

    assert taken().config["block"] in (8, 16)
    assert asked == [[("A", [16], "float32"), ("I", [16], "int32")]]


SLOW = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell starts in the background
import tilewright as tw, tilewright.language as T
from tilewright.tuner import autotune
@autotune(configs=[{"block": b} for b in range(1, int(sys.argv[3]))], warmup=1, rep=int(sys.argv[4]), log=sys.argv[1])
@tw.jit(out_idx=-1, engine=sys.argv[2])
def copied(block=1):
    @T.prim_func
    def main(A: T.Tensor((20000,), "float32"), B: T.Tensor((20000,), "float32")):
        with T.Kernel(T.ceildiv(20000, block), threads=32) as bx:
            for i in T.Parallel(block):
                if bx * block + i < 20000:
                    B[bx * block + i] = A[bx * block + i]
    return main
try:
    copied()
except KeyboardInterrupt:
    print("stopped")
    sys.exit(3)
"""


@every_engine
def test_control_c_stops_and_keeps_what_is_known(engine, tmp_path):
    script, log = tmp_path / "slow.py", tmp_path / "log.json"
    script.write_text(SLOW)
    count, milliseconds = ("200", "1") if engine in ("interpreter", "simulator") else ("6", "300")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    process = subprocess.Popen([sys.executable, script, log, engine, count, milliseconds], env=environment, stdout=subprocess.PIPE, text=True,
                               stderr=subprocess.PIPE, start_new_session=True)  # fmt: skip
    deadline = time.monotonic() + 240
    while (not log.exists() or log.read_text().count("\n") < 2) and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal sends it: to its children too
    begin = time.monotonic()
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 3 and out == "stopped\n", errors
    assert time.monotonic() - begin < 20
    records = [json.loads(line) for line in log.read_text().splitlines()]
    assert 2 <= len(records) < int(count) - 1 and all("latency" in r for r in records)


WITHOUT_TORCH = """
import importlib.util, sys
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name in ("torch", "ml_dtypes") else found(name, *more)
sys.modules["torch"] = sys.modules["ml_dtypes"] = None
import numpy as np
import tilewright as tw
import tilewright.language as T

@tw.autotune(configs=[{"block": b} for b in (16, 32)], warmup=1, rep=1)
@tw.jit(out_idx=[-1])
def doubled(N, block=32, dtype="float32", out="float32"):
    @T.prim_func
    def main(A: T.Tensor((N,), dtype), B: T.Tensor((N,), out)):
        with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i] * 2
    return main

kernel = doubled(64)
assert kernel.config["block"] in (16, 32) and kernel.latency > 0
profiler = kernel.get_profiler()
assert set(profiler.report(warmup=1, rep=1)) == {"min ms", "median ms", "p95 ms", "GB/s"}
profiler.assert_allclose(lambda a: a * 2)
profiler.assert_consistent(3)
assert isinstance(profiler.run_once(), np.ndarray)
try:
    profiler.assert_allclose(lambda a: a * 3)
except AssertionError as error:
    assert "output 0 differs in" in str(error)
for kind, supply in (("float16", "Normal"), ("int8", "Auto"), ("uint32", "Auto"), ("bool", "Auto"), ("float64", "One"), ("float32", "Zero")):
    made = doubled(64, block=16, dtype=kind, out="float32").get_profiler(tw.TensorSupplyType[supply])._inputs()[0]
    assert made.dtype == kind and made.shape == (64,), kind
assert tw.ops.add(np.ones(4, "float32"), np.ones(4, "float32")).tolist() == [2] * 4
for call in (lambda: doubled(64, dtype="bfloat16"), lambda: doubled(64, block=16, out="bfloat16")(np.ones(64, "float32")),
             lambda: tw.custom_op("mine::f", kernel), lambda: T.float16.as_torch()):
    try:
        call()
    except tw.TilewrightError as error:
        print(error.code, error.message, "|", error.help)
"""


def test_without_pytorch(tmp_path):
    (tmp_path / "without.py").write_text(WITHOUT_TORCH)
    ran = subprocess.run([sys.executable, "without.py"], cwd=tmp_path, capture_output=True, text=True,
                         env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "TILEWRIGHT_ENGINE": "cpu"})  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    tensor, output, *needs = ran.stdout.splitlines()
    assert needs == [f'TW1101 {what} needs PyTorch, which is not installed | pip install "tilewright[torch]"' for what in ("custom_op()", "as_torch() of float16")]
    assert tensor == ("TW1101 no tensor of bfloat16 can be made for 'A': NumPy has none, and PyTorch is not installed | "
                      'pip install "tilewright[torch]", or pass tensors of your own')  # fmt: skip
    assert output == ("TW4004 an output is bfloat16, which NumPy has not: no array can be made for it | "
                      "pip install ml_dtypes, which NumPy's types are extended by; or call it with PyTorch's tensors")  # fmt: skip
