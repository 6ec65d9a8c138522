"""Programs pasted from documents about TileLang, run as they stand there; what a document leaves out is completed here.

The documents are others' text and not of this tree: TILEWRIGHT_DOCUMENTS names the folder that has them. Test with
TILEWRIGHT_DOCUMENTS=FOLDER python -m pytest tests/python/test_source_documents.py; where there is a device, on it too.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import textwrap

import pytest
import tilewright as tw

FOLDER = os.environ.get("TILEWRIGHT_DOCUMENTS")
pytestmark = pytest.mark.skipif(not FOLDER, reason="TILEWRIGHT_DOCUMENTS is not set")
HEAD = "import tilelang\nimport tilelang.language as T\nimport torch\n"
RUN = """
import runpy, sys
import tilewright
tilewright.install_as_tilelang(force=True)
if tilewright._native.device_count() == 0:
    tilewright.without_gpu()
runpy.run_path(sys.argv[1], run_name="__main__")
"""


def document(name):
    return (pathlib.Path(FOLDER) / name).read_text()


def article():
    """Its blocks of Python, in order."""
    return re.findall(r"```(?: python)?\n(.*?)```", json.loads(document("article_gemm_to_mla.txt"))["body_md"], re.DOTALL)


def product_with_its_profiler():
    return "\n".join(b for b in article() if re.search("matmul_relu_kernel|get_kernel_source|get_profiler", b))


TWO_PASSES = """
T.clear(ss)
squares = T.alloc_fragment((BLOCK_M, BLOCK_C), accum_dtype)
part, rinv = T.alloc_fragment((BLOCK_M,), accum_dtype), T.alloc_fragment((BLOCK_M,), accum_dtype)
for k in T.serial(C // BLOCK_C):
    T.copy(X[bm * BLOCK_M, k * BLOCK_C], X_chunk)
    for i, j in T.Parallel(BLOCK_M, BLOCK_C):
        squares[i, j] = T.cast(X_chunk[i, j], accum_dtype) * T.cast(X_chunk[i, j], accum_dtype)
    T.reduce_sum(squares, part, dim=1)
    for i in T.Parallel(BLOCK_M):
        ss[i] += part[i]
for i in T.Parallel(BLOCK_M):
    rinv[i] = T.rsqrt(ss[i] / C + 1e-5)
for k in T.serial(C // BLOCK_C):
    T.copy(X[bm * BLOCK_M, k * BLOCK_C], X_chunk)
    for i, j in T.Parallel(BLOCK_M, BLOCK_C):
        value = T.cast(X_chunk[i, j], accum_dtype) * gamma[k * BLOCK_C + j] * rinv[i]
        X_chunk[i, j] = value / (1 + T.exp(-value))
    T.copy(X_chunk, Y[bm * BLOCK_M, k * BLOCK_C])
"""
CALL_OF_NORM = """
kernel = tilelang.compile(main, out_idx=[2])
x, weights = torch.randn(M, C, device="cuda", dtype=torch.float16), torch.randn(C, device="cuda", dtype=torch.float16)
wide = x.float()
wanted = torch.nn.functional.silu(wide * weights.float() * torch.rsqrt((wide * wide).mean(1, keepdim=True) + 1e-5))
torch.testing.assert_close(kernel(x, weights).float(), wanted, rtol=1e-2, atol=1e-2)
"""


def norm_with_silu(width):
    block = next(b for b in article() if "gamma: T.Tensor" in b)
    chunk = next(c for c in (128, 64, 32) if width % c == 0)
    sizes = f"M, C, BLOCK_M, BLOCK_C, dtype, accum_dtype = 37, {width}, 8, {chunk}, 'float16', 'float32'\n"
    begun = block[: block.index("        # pass 1")]
    return HEAD + sizes + begun + textwrap.indent(TWO_PASSES, " " * 8) + CALL_OF_NORM


def steps_of_the_developers_skill():
    """Step 3 goes where step 2 says that the kernel's logic goes, step 4 into the launch that step 3 opens."""
    two, three, four, five = re.findall(r"```python\n(.*?)```", document("skill_tilelang_developer.txt"), re.DOTALL)[:4]
    logic = textwrap.indent(three.rstrip() + "\n\n" + textwrap.indent(four, "    "), " " * 8)
    assert two.count("        pass\n") == 1
    return two.replace("        pass\n", logic) + "\n" + five


def scale_of_the_kernels_skill():
    text = document("skill_tilekernels.txt")
    block = text[text.index("# tile_kernels follow TileLang DSL patterns") : text.index("Architecture-Specific Notes")]
    return block + textwrap.dedent("""
        import torch
        a, factor = torch.randn(1024, 4096).half(), torch.randn(1024)
        b = torch.empty_like(a)
        kernel(a, factor, b)
        torch.testing.assert_close(b, (a.float() * factor[:, None]).half())
    """)


def blocks_of_the_slides(word):
    block = next(b for b in re.findall(r"```\n(.*?)```", document("slides_tilelang.txt"), re.DOTALL) if word in b)
    return re.sub(r"^\d+ ", "", block, flags=re.MULTILINE)


def product_of_the_slides():
    sizes = "M = N = K = 256\nblock_M = block_N = 64\nblock_K = 32\ndtype, accum_dtype = 'float16', 'float32'\n"
    block = blocks_of_the_slides("matmul_relu_kernel")
    return HEAD + sizes + block[block.index("@T.prim_func") :] + textwrap.dedent("""
        a, b = (torch.randn(256, 256, device="cuda").half() for _ in range(2))
        found = tilelang.compile(matmul_relu_kernel, out_idx=-1)(a, b)
        torch.testing.assert_close(found, torch.relu(a @ b), rtol=1e-2, atol=1e-2)
    """)


LATENT = """
batch, heads, kv_head_num, seqlen, dim, pe_dim, block_N, block_H = 2, 16, 1, 96, 64, 16, 32, 16
BLOCK_H, kv_group_num = block_H, heads // kv_head_num
dtype, accum_dtype = "float16", "float32"
scale = (1.0 / (dim + pe_dim)) ** 0.5 * 1.44269504

@T.prim_func
def latent(Q: T.Tensor([batch, heads, dim], dtype), Q_pe: T.Tensor([batch, heads, pe_dim], dtype),
           KV: T.Tensor([batch, seqlen, kv_head_num, dim], dtype), K_pe: T.Tensor([batch, seqlen, kv_head_num, pe_dim], dtype),
           Output: T.Tensor([batch, heads, dim], dtype)):
"""
SKIPPED = """
O_shared, KVShared = T.alloc_shared([block_H, dim], dtype), T.alloc_shared([block_N, dim], dtype)
KPE_shared, acc_o = T.alloc_shared([block_N, pe_dim], dtype), T.alloc_fragment([block_H, dim], accum_dtype)
scores_max, scores_max_prev = T.alloc_fragment([block_H], accum_dtype), T.alloc_fragment([block_H], accum_dtype)
scores_scale, scores_sum = T.alloc_fragment([block_H], accum_dtype), T.alloc_fragment([block_H], accum_dtype)
logsum = T.alloc_fragment([block_H], accum_dtype)
cur_kv_head = by // (kv_group_num // block_H)
T.copy(Q[bx, by * block_H:(by + 1) * block_H, :], QShared)
T.copy(Q_pe[bx, by * block_H:(by + 1) * block_H, :], QPEShared)
T.fill(acc_o, 0)
T.fill(logsum, 0)
T.fill(scores_max, -T.infinity(accum_dtype))
loop_range = T.ceildiv(seqlen, block_N)
"""
CALL_OF_LATENT = """
kernel = tilelang.compile(latent, out_idx=-1)
shapes = (batch, heads, dim), (batch, heads, pe_dim), (batch, seqlen, 1, dim), (batch, seqlen, 1, pe_dim)
q, q_pe, kv, k_pe = (torch.randn(*s, device="cuda").half() for s in shapes)
keys = torch.cat([kv, k_pe], -1)[:, :, 0].float()
weights = torch.softmax(torch.cat([q, q_pe], -1).float() @ keys.transpose(1, 2) / (dim + pe_dim) ** 0.5, -1)
torch.testing.assert_close(kernel(q, q_pe, kv, k_pe).float(), weights @ keys[..., :dim], rtol=1e-2, atol=1e-2)
"""


def latent_attention_of_the_slides():
    """The slide writes a zero for the O of O_shared, and leaves its initialization out."""
    opened, loop = blocks_of_the_slides("QShared").split("... skip initialization statements\n")
    body = opened + textwrap.indent(SKIPPED + loop.replace("0_shared", "O_shared"), "  ")
    return HEAD + LATENT + textwrap.indent(body, "    ") + CALL_OF_LATENT


PROGRAMS = {
    "article_product": product_with_its_profiler,
    **{f"article_norm_{c}": lambda c=c: norm_with_silu(c) for c in (160, 256, 320, 512, 640, 1024)},
    "skill_steps": steps_of_the_developers_skill,
    "skill_scale": scale_of_the_kernels_skill,
    "slides_product": product_of_the_slides,
    "slides_latent": latent_attention_of_the_slides,
}
LARGE = {"article_product", "skill_steps", "skill_scale"}  # by what runs one operation after the other: minutes
ENGINES = ["cpu", "interpreter", "simulator"] if tw._native.device_count() == 0 else ["cuda"]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("engine", ENGINES)
def test_programs_of_documents(engine, program, tmp_path):
    if engine in ("interpreter", "simulator") and program in LARGE:
        pytest.skip("a product or a tensor too large for this engine")
    script = tmp_path / f"{program}.py"
    script.write_text(PROGRAMS[program]())
    chosen = {} if engine == "cuda" else {"TILEWRIGHT_ENGINE": engine}  # where there is a device, it is taken as it is
    environment = {**os.environ, **chosen, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    ran = subprocess.run([sys.executable, "-c", RUN, script], env=environment, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr[-3000:]
