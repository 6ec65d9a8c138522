"""tilewright lsp: what editors start."""
import argparse


def lsp(argv):
    argparse.ArgumentParser(prog="tilewright lsp", description="A language server (LSP 3.17) on standard input and output, for editors to start. "
                            "It imports the files that are opened, each in a process of its own (docs/lsp.md).").parse_args(argv)  # fmt: skip
    from ..lsp.server import main

    return main()
