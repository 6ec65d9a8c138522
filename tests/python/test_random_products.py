"""Products that bench/gpu/peers.py draws: whatever the shape, the tile, its stages, threads, type and order in memory, they are wgmma."""
import importlib.util
import json
import pathlib

import pytest

import tilewright
import tilewright.language as T

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARE = 50  # of the products, in one test


class Traced:
    """A frontend whose jit gives the program as it is."""

    T = T

    class tilelang:
        @staticmethod
        def jit(out_idx=None):
            return lambda function: function


@pytest.fixture(scope="module")
def peers():
    spec = importlib.util.spec_from_file_location("peers", ROOT / "bench/gpu/peers.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def products(peers):
    for case in peers.random_gemms(300, 1):
        _, shape, form, *tiles = case.split()
        operand, order = ("float16", form[4:]) if form.startswith("f16.") else ("bfloat16", form)
        for tile in tiles:
            blocks, stages, threads = tile.split(":")
            yield [int(n) for n in shape.split("x")], order, [int(n) for n in blocks.split("x")], int(stages), int(threads), operand


def test_a_seed_always_draws_the_same(peers):
    assert peers.random_gemms(300, 1) == peers.random_gemms(300, 1) != peers.random_gemms(300, 2)
    assert len(list(products(peers))) == 300


def test_what_is_below_tilelang_is_told(peers):
    rows = [{"case": "c", "name": "cublas", "sustained": {"us": 5.0}}]
    for tile, ours, theirs in (("a", 10.0, 12.0), ("b", 10.0, 7.5)):
        rows += [{"case": "c", "name": f"tilewright {tile}", "sustained": {"us": ours}}, {"case": "c", "name": f"tilelang {tile}", "sustained": {"us": theirs}}]
    ratios, mean = peers.against_tilelang(rows)
    assert ratios == {"c a": 1.2, "c b": 0.75} and mean == pytest.approx(0.9486832980505138)
    assert peers.against_tilelang(rows[:1]) == ({}, None)


@pytest.mark.parametrize("first", range(0, 300, SHARE))
def test_tiles_that_nobody_chose_are_wgmma(peers, first, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_NVRTC", "/nonexistent")  # what instructions are is known without
    for (M, N, K), order, tile, stages, threads, operand in list(products(peers))[first : first + SHARE]:
        program = peers._gemm_program(Traced, M, N, K, order, *tile, stages, threads, operand)
        facts = json.loads(program.program.explain("sm_90a", True, {}))
        (gemm,) = [op for op in facts["launches"][0]["operations"] if op["text"].startswith("gemm")]
        about = f"{M}x{N}x{K} {operand} {order}, tile {tile}, {stages} stages, {threads} threads"
        if any("wgmma.mma_async" in line for line in gemm["becomes"]):
            continue
        # Columns that each of two warpgroups takes, where the rows are not 64 for each: panels of 16 divide them, or nothing does.
        assert tile[0] % (threads // 2) != 0 and tile[1] // 2 % 16 != 0 and order[1] == "n", about + f": {gemm}"
        assert gemm["rejected"] == ["wgmma: the tile is no whole panels of 'B_shared'"], about
        assert any("mma.sync" in line for line in gemm["becomes"]), about
