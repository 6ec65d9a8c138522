"""tilewright lsp: what editors start."""
import argparse
import importlib.util
import sys


def lsp(argv):
    argparse.ArgumentParser(prog="tilewright lsp", description="A language server (LSP 3.17) on standard input and output, for editors to start. "
                            "It imports the programs that are opened, each in a process of its own (docs/lsp.md).").parse_args(argv)  # fmt: skip
    if importlib.util.find_spec("pygls") is None:
        print('tilewright: lsp: the language server needs pygls: pip install "tilewright[lsp]"', file=sys.stderr)
        return 2
    from ..lsp.server import main

    return main()
