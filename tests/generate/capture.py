"""Writes the text of every program that Python builds into a folder, for mutate.py. Nothing of it is kept here.

    python tests/generate/capture.py OUT SCRIPT [ARGUMENT...]      a script that imports tilelang or tilewright
    python tests/generate/capture.py OUT -m pytest [ARGUMENT...]   tests of such programs

A program is written when it is traced. By default it is not run: whoever compiles it is told that it was captured, so that
a large test suite takes minutes; --run goes on as usual."""
import hashlib
import pathlib
import runpy
import sys


class Captured(BaseException):
    """Ends what wanted to run a program."""


def capture(out, run=False):
    """From here on, programs that are traced are written to the folder."""
    import tilewright.kernel
    import tilewright.program

    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    traced = tilewright.program.PrimFunc.__init__

    def written(self, *arguments, **named):
        traced(self, *arguments, **named)
        text = self.program.text
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        (out / f"{self.name[:40]}_{digest}.tile").write_text(text)

    tilewright.program.PrimFunc.__init__ = written
    if run:
        return

    class Kernel(tilewright.kernel.Kernel):
        def __new__(cls, *arguments, **named):
            if "pytest" in sys.modules:
                sys.modules["pytest"].skip("captured")
            raise Captured

    tilewright.kernel.Kernel = Kernel


def main(arguments):
    run = "--run" in arguments[:2]
    out, *rest = [a for a in arguments if a != "--run"]
    import tilewright

    from tilewright import _native

    if not _native.device_count():
        tilewright.without_gpu()
    tilewright.install_as_tilelang()
    capture(out, run)
    try:
        if rest[0] == "-m":
            sys.argv = rest[1:]
            runpy.run_module(rest[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = rest
            sys.path.insert(0, str(pathlib.Path(rest[0]).parent))
            runpy.run_path(rest[0], run_name="__main__")
    except Captured:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
