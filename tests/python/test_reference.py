"""The pages of the reference, one for each operation: their examples run, in C++ they are the same programs, their mistakes are
errors with codes, and what is written of them comes from the compiler."""
import pathlib
import re
import subprocess
import sys

import pytest
from tilewright import _native, reference

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import reference_examples  # noqa: E402
import reference_pages  # noqa: E402

PRINTER = pathlib.Path(_native.__file__).parents[2] / "tests/print_reference"
OPERATIONS = {row[0]: row for row in reference_pages.listed()}
EXAMPLES = reference_examples.examples()


def test_every_operation_has_an_example():
    assert {row[0] for row in _native.operations() if row[1] in reference.GROUPS} <= EXAMPLES.keys() == OPERATIONS.keys()
    assert {"Kernel", "Parallel", "Pipelined"} <= EXAMPLES.keys()


def test_both_languages_record_the_same_program(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_ENGINE", "interpreter")
    if not PRINTER.exists():
        pytest.skip("the program that prints the C++ examples is built in the build tree only")
    printed = subprocess.run([PRINTER], capture_output=True, text=True, check=True).stdout.split("### ")[1:]
    texts = dict(part.split("\n", 1) for part in printed)
    assert len(texts) > 190
    for name, text in texts.items():
        space = reference_pages.run(reference_pages.source_of(EXAMPLES[name]), f"{name}.py")
        assert reference_pages.program_of(space).script().strip() == text.strip(), name


def test_what_cpp_has_a_word_for_is_shown_in_it():
    header = (ROOT / "include/tilewright/language.h").read_text()
    words = set(re.findall(r"^(?:inline )?[\w:&]+ (\w+)\(", header, re.MULTILINE))
    assert {"gemm", "exp", "sync_threads"} <= words
    assert not [name for name, example in EXAMPLES.items() if not example.cpp and name in words]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """All of them, by operation. To write one is to run its example and each of its mistakes."""
    folder = tmp_path_factory.mktemp("reference")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILEWRIGHT_ENGINE", "interpreter")
        reference_pages.write(folder)
    return {path.stem: path.read_text() for path in folder.glob("*.md")}


def test_pages(pages):
    assert pages.keys() - {f"{group}_operations" for group in reference_pages.GROUPS} == OPERATIONS.keys()
    for name in OPERATIONS:
        for part in ("## Example", "## What it becomes on sm_90a", "## Mistakes", '=== "Python"', f"T.{name}("):
            assert part in pages[name], f"{name} has no {part}"
    assert "wgmma.mma_async" in pages["gemm"] and "expf(" in pages["exp"] and "**[TW" in pages["copy"]
    assert '=== "C++"' in pages["gemm"] and "C++ has no word for it" in pages["get_warp_group_idx"]


def test_what_becomes_no_code(pages):
    silent = sorted(name for name, row in OPERATIONS.items() if "No code of its own" in pages[name] and row[1] != reference_pages.PROGRAMS)
    assert silent == ["address_of", "alloc_global", "annotate_min_blocks_per_sm", "annotate_plan", "assume", "get_block_binding",
                      "get_thread_binding", "make_tensor", "thread_return", "use_swizzle"]  # fmt: skip
