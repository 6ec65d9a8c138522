"""Cases that processes of a script share: one that dies loses the case that it was at; what was left to it goes on in another.

A process is given `--cases FILE --rows FILE --seconds N`. It takes the cases of the one file, tells in the other which it begins
with and what it found (Rows), and ends by itself: with a status that is not 0 where it cannot go on."""

import json
import subprocess
import tempfile
import time


def cases_in(path):
    with open(path, encoding="utf-8") as file:
        return file.read().split("\n")


class Rows:
    """What a process tells of its cases."""

    def __init__(self, path):
        self.file = open(path, "a", encoding="utf-8")

    def begin(self, case):
        self.found({"begun": case})

    def found(self, row):
        self.file.write(json.dumps(row) + "\n")
        self.file.flush()


class _Share:
    def __init__(self, command, cases, end, spare):
        self.cases, self.end, self.late = cases, end, False
        files = (tempfile.NamedTemporaryFile("w+", encoding="utf-8", errors="replace") for _ in range(3))
        self.wanted, self.rows, self.said = files
        self.wanted.write("\n".join(cases))
        self.wanted.flush()
        seconds = max(1, end - spare - time.perf_counter())
        command = [*command, "--cases", self.wanted.name, "--rows", self.rows.name, "--seconds", f"{seconds:.0f}"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=self.said)

    def has_ended(self):
        if self.process.poll() is None and time.perf_counter() > self.end:
            self.late = True
            self.process.kill()
            self.process.wait()
        return self.process.poll() is not None

    def take(self, rows, key, lost):
        """Adds what was found; returns the cases that another process is to take."""
        begun, found = [], set()
        self.rows.seek(0)
        for line in self.rows:
            if not line.endswith("\n"):
                break  # it was ended here
            row = json.loads(line)
            if "begun" in row:
                begun.append(row["begun"])
            else:
                rows[row[key]] = row
                found.add(row[key])
        if self.late or self.process.returncode == 0:
            return []
        rest = [c for c in self.cases if c not in found and c not in begun]
        if not begun:
            begun = [rest.pop(0)]  # it came to none: so that there is an end to it
        if begun[-1] not in found:
            self.said.seek(0)
            text = f"the process ended with {self.process.returncode}: {self.said.read()[-400:]}"
            rows[begun[-1]] = {key: begun[-1], lost: text}
        return rest


def in_processes(command, cases, side, seconds, key="case", lost="failed", spare=0.0):
    """{case: row} of `side` processes of a command. A row has its case as `key`; that of a case which ended a process has what
    was said as `lost`. Processes are asked to end `spare` seconds before the time is over, and ended then."""
    rows, running, end = {}, [], time.perf_counter() + seconds
    waiting = [share for i in range(side) if (share := cases[i::side])]
    while waiting or running:
        if time.perf_counter() < end - spare:
            running += [_Share(command, share, end, spare) for share in waiting]
        waiting = []
        time.sleep(0.05)
        for share in [s for s in running if s.has_ended()]:
            running.remove(share)
            if rest := share.take(rows, key, lost):
                waiting.append(rest)
    return rows
