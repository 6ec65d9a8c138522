"""tilewright compat PATH... | --list FILE: runs programs written against TileLang, side by side, and reports."""
import argparse
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed

from .. import outputs
from . import programs, report, running


def arguments(argv=None):
    parse = argparse.ArgumentParser(prog="tilewright compat", description=__doc__)
    parse.add_argument("paths", nargs="*", metavar="PATH", help="programs, or folders of them")
    parse.add_argument("--list", metavar="FILE", help="programs by a table with a column `path` (and `role`, where the name does not say it), or one path a line")
    parse.add_argument("--root", default=".", help="where the paths of the table begin (.)")
    parse.add_argument("--path", action="append", default=[], metavar="FOLDER", help="a folder of each program's project that its imports begin in too")
    parse.add_argument("--only", default="", metavar="REGEX", help="programs whose name matches")
    parse.add_argument("--where", action="append", default=[], metavar="COLUMN=VALUE,VALUE", help="rows of the table with one of these values")
    parse.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="programs at once (one for each core)")
    parse.add_argument("--cases", type=int, default=24, help="cases of a test file at most, evenly spaced; 0: all (24)")
    parse.add_argument("--limit", type=float, default=150, metavar="SECONDS", help="time of one program (150)")
    parse.add_argument("--total", type=float, metavar="SECONDS", help="time of all; what has not begun then is not run")
    parse.add_argument("--engine", default="auto", choices=["auto", "cuda", "cpu", "interpreter", "simulator"])
    parse.add_argument("--without-gpu", action="store_true", help="give programs a description of a device, and the CPU's memory for it")
    parse.add_argument("--compile-for", default="", metavar="sm_90a", help="also compile every program for this GPU")
    parse.add_argument("--only-compile", action="store_true", help="a case ends where its first kernel is called")
    parse.add_argument("--warm", action="store_true", help="use the kernels that are in the cache; else every run begins with an empty one")
    parse.add_argument("--out", default="compat", help="folder for report.tsv, report.json, report.html, cases.tsv and logs (./compat)")
    options = parse.parse_args(argv)
    if bool(options.paths) == bool(options.list):
        parse.error("give paths or --list")
    for path in [*options.paths, *([options.list] if options.list else [])]:
        if not os.path.exists(path):
            parse.error(f"there is no file or folder '{path}'")
    return options


def main(argv=None):
    options = arguments(argv)
    found = programs.of_list(options.list, options.root) if options.list else programs.of_paths(options.paths)
    found = programs.chosen(found, options.only, options.where)
    modules = programs.left_out(options.paths)
    if modules:
        shown = ", ".join(modules[:8]) + (", ..." if len(modules) > 8 else "")
        print(f"left out, for they are no tests and have no part for `if __name__ == \"__main__\"` (name those that are to run): {shown}")
    if not found:
        print("no program is chosen: of folders, those are that import tilelang and are tests, or have such a part; --only and --where choose among them")
        return 2
    outputs.make_folder(os.path.join(options.out, "logs"))
    outputs.check(os.path.join(options.out, "report.tsv"))
    begin, results = time.time(), []
    with tempfile.TemporaryDirectory(prefix="tilewright_compat_") as scratch, ThreadPoolExecutor(options.jobs) as pool:
        deadline = begin + options.total if options.total else None
        runs = [pool.submit(running.run, p, options, scratch, deadline) for p in found]
        for number, done in enumerate(as_completed(runs), 1):
            result = done.result()
            results.append(result)
            print(f"[{number}/{len(found)}] {result.line()}", flush=True)
        for i, result in enumerate(results):
            if result.lacked_memory:  # beside the others
                results[i] = running.run(result.program, options, scratch, deadline)
                print(f"[alone] {results[i].line()}", flush=True)
    order = {p.name: i for i, p in enumerate(found)}
    results.sort(key=lambda r: order[r.program.name])
    report.write(results, options.out, time.time() - begin)
    print(report.summary(results, time.time() - begin))
    print(f"written: {options.out}/report.tsv, report.json, report.html, cases.tsv")
    return 0 if all(r.status in ("pass", "text", "skip") for r in results) else 1


if __name__ == "__main__":
    sys.exit(main())
