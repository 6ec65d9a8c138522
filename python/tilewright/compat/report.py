"""What ran and what did not: report.tsv, report.json and cases.tsv for programs, report.html and a summary for people."""
import csv
import html
import json
import os
import re
from collections import Counter, defaultdict

_COLUMNS = ("tier", "kind", "family", "original", "original_cases")
_STATUSES = ("pass", "text", "fail", "timeout", "crash", "skip", "not run")


def group_of(cause):
    """Causes that differ in names and numbers alone are one."""
    text = re.sub(r"'[^']*'|\"[^\"]*\"", "'…'", f"{cause['kind']}: {cause['cause']}")
    if cause["kind"] in ("not there", "import"):
        text = f"{cause['kind']}: {cause['cause']}"
    return re.sub(r"(?<![A-Za-z_\d])-?\d+(\.\d+)?(e[-+]?\d+)?", "N", text)[:160]


def groups(results):
    """[(cause, programs, cases)], those that stand in the way of most programs first."""
    found = defaultdict(lambda: defaultdict(list))
    for result in results:
        for cause in result.causes:
            found[group_of(cause)][result.program.name].append(cause)
    listed = [(text, by, sum(map(len, by.values()))) for text, by in found.items()]
    return sorted(listed, key=lambda g: (-len(g[1]), -g[2], g[0]))


def _counts(results):
    by = Counter(r.status for r in results)
    return ", ".join(f"{by[s]} {s}" for s in _STATUSES if by[s])


def _by_column(results, column):
    values = defaultdict(list)
    for r in results:
        values[r.program.columns.get(column, "")].append(r)
    return sorted(values.items())


def summary(results, seconds):
    lines = [f"{len(results)} programs in {seconds:.0f} s: {_counts(results)}; cases {_cases(results)}"]
    for column in ("tier", "kind"):
        if any(column in r.program.columns for r in results):
            lines += [f"  {column} {value or '?'}: {_counts(rows)}; cases {_cases(rows)}" for value, rows in _by_column(results, column)]
    for kind, what in (("text of TileLang", "text that only TileLang generates"), ("generated text", "other generated text")):
        texts = sum(c["kind"] == kind for r in results for c in r.causes)
        if texts:
            lines.append(f"  {texts} cases fail at a look at {what}")
    reasons = Counter(c.get("cause", "") for r in results for c in r.skipped)
    if reasons:
        lines.append(f"  {reasons.total()} cases skipped: " + ", ".join(f"{text} ({count})" for text, count in reasons.most_common(8)))
    lines.append("causes, by programs (cases):")
    lines += [f"  {len(by):3} ({cases:3})  {text}" for text, by, cases in groups(results)[:40]]
    return "\n".join(lines)


def _cases(results):
    passed, ran = sum(r.passed for r in results), sum(r.ran for r in results)
    others = ran - sum(c["kind"] == "text of TileLang" for r in results for c in r.causes)
    besides = f", {passed / others:.1%} of those that look at no text of TileLang" if 0 < others < ran else ""
    return f"{passed} of {ran}" + (f" ({passed / ran:.1%}{besides})" if ran else "")


def write(results, folder, seconds):
    with open(os.path.join(folder, "report.tsv"), "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, delimiter="\t")
        table.writerow(["path", *_COLUMNS, "status", "passed", "ran", "skipped", "seconds", "compiled", "causes"])
        for r in results:
            apart = Counter(group_of(c) for c in r.causes)
            causes = "; ".join(f"{text} ({count})" for text, count in apart.most_common(4))
            compiled = "no" if any(c.get("not_compiled") for c in r.cases) else "yes" if r.cases else ""
            row = [r.program.columns.get(c, "") for c in _COLUMNS]
            table.writerow([r.program.name, *row, r.status, r.passed, r.ran, len(r.skipped), f"{r.seconds:.1f}", compiled, causes])
    whole = {"seconds": round(seconds, 1), "programs": dict(Counter(r.status for r in results)), "results": {}}
    for r in results:
        columns = {c: r.program.columns[c] for c in _COLUMNS if r.program.columns.get(c)}
        causes = dict(Counter(f"{c['kind']}: {c['cause']}" for c in r.causes).most_common())
        whole["results"][r.program.name] = {
            **columns, "status": r.status, "passed": r.passed, "ran": r.ran, "skipped": len(r.skipped), "seconds": round(r.seconds, 1), "causes": causes,
        }  # fmt: skip
    with open(os.path.join(folder, "report.json"), "w", encoding="utf-8") as file:
        file.write(json.dumps(whole, indent=1) + "\n")
    with open(os.path.join(folder, "cases.tsv"), "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, delimiter="\t")
        table.writerow(["path", "case", "outcome", "seconds", "kind", "cause", "place"])
        for r in results:
            for c in r.cases:
                table.writerow([r.program.name, c["case"], c["outcome"], c.get("seconds", ""), *(c.get(k, "") for k in ("kind", "cause", "place"))])
    with open(os.path.join(folder, "report.html"), "w", encoding="utf-8") as file:
        file.write(_page(results, seconds))


_STYLE = """body{font:14px/1.4 system-ui,sans-serif;margin:2em auto;max-width:80em;padding:0 1em;color:#222}
table{border-collapse:collapse;width:100%}td,th{border-bottom:1px solid #ddd;padding:.3em .6em;text-align:left;vertical-align:top}
.pass{color:#176f2c}.fail,.crash,.timeout{color:#a40e26}.skip,.not,.text{color:#777}code{font-size:12px}summary{cursor:pointer}"""


def _page(results, seconds):
    text = html.escape
    parts = [f"<!doctype html><meta charset=utf-8><title>Tilewright: migration report</title><style>{_STYLE}</style>",
             f"<h1>Migration report</h1><p>{len(results)} programs in {seconds:.0f} s: {text(_counts(results))}. "
             f"Cases: {text(_cases(results))}.</p>"]  # fmt: skip
    if any("tier" in r.program.columns for r in results):
        rows = "".join(f"<tr><td>{text(v)}<td>{text(_counts(rs))}<td>{text(_cases(rs))}" for v, rs in _by_column(results, "tier"))
        parts.append(f"<h2>By tier</h2><table><tr><th>tier<th>programs<th>cases{rows}</table>")
    parts.append("<h2>Causes</h2><table><tr><th>programs<th>cases<th>cause")
    for cause, by, cases in groups(results):
        listed = "".join(f"<li><code>{text(name)}</code> {text(cs[0]['place'])} <code>{text(cs[0]['line'])}</code>" for name, cs in by.items())
        parts.append(f"<tr><td>{len(by)}<td>{cases}<td><details><summary>{text(cause)}</summary><ul>{listed}</ul></details>")
    parts.append("</table><h2>Programs</h2><table><tr><th>program<th>result<th>cases<th>seconds<th>first cause")
    for r in results:
        first = text(r.causes[0]["cause"][:200]) if r.causes else ""
        status = r.status.partition(" ")[0]
        parts.append(f"<tr><td><code>{text(r.program.name)}</code><td class={status}>{r.status}<td>{r.passed}/{r.ran}<td>{r.seconds:.1f}<td>{first}")
    return "\n".join([*parts, "</table>"])
