"""The host compiler of generated programs: compiles those that wait at a time as one text (library.prepare starts it).

A kernel's compiler is then `ask`, a small program that says where its text is and waits. What it finds there afterwards is a
kernel as g++ makes it with the same flags, in a file with its neighbours: a number in the file says which is the kernel's."""
import dataclasses
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading

MARK = b"the number of a kernel: "


@dataclasses.dataclass(frozen=True)
class Level:
    """A compiler, what is said to it beyond the usual flags, and how many kernels one text has at most. Of those that it does not
    optimize, larger texts do not compile faster; of the others none does, and who asked first waits for the last."""

    compiler: str
    more: tuple
    most: int


# What C++ leaves undefined, -fwrapv or not, ends the process.
CHECKED = ("-O0", "-fsanitize=shift,integer-divide-by-zero,bounds,float-cast-overflow", "-fsanitize-undefined-trap-on-error")
# By the word behind "cpu:". The first is the one without: four times as fast as "optimized".
LEVELS = {"quick": Level("g++", ("-O0",), 24), "optimized": Level("g++", (), 4), "checked": Level("g++", CHECKED, 24),
          "clang++": Level("clang++", (), 4)}  # fmt: skip

ASK = r"""
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
int main(int count, char** words) {
  const char* level = strrchr(words[0], '/') + 1;
  const char* compiler = strcmp(level, "clang++") ? "g++" : level;
  if (count > 1 && !strcmp(words[1], "--version")) return execlp(compiler, compiler, "--version", (char*)0), 1;
  struct sockaddr_un to = {AF_UNIX, SOCKET};
  int line = socket(AF_UNIX, SOCK_STREAM, 0);
  if (connect(line, (struct sockaddr*)&to, sizeof to)) return perror(SOCKET), 2;
  char text[1 << 16];
  if (!getcwd(text, 4096)) return 2;
  size_t size = strlen(text);
  for (int i = 0; i < count; ++i) size += snprintf(text + size, sizeof text - size, "\n%s", i ? words[i] : level);
  if (write(line, text, size + 1) != (ssize_t)size + 1) return 2;
  int status = 2, got;
  if (read(line, &status, sizeof status) != sizeof status) return 2;
  while ((got = read(line, text, sizeof text)) > 0) fwrite(text, 1, got, stdout);
  return status;
}
"""


class Request:
    def __init__(self, connection):
        self.connection, data = connection, b""
        while not data.endswith(b"\0"):
            part = connection.recv(1 << 16)
            if not part:
                raise ConnectionError
            data += part
        self.folder, level, *self.words = data[:-1].decode().split("\n")
        self.level = LEVELS[level]
        self.command = [self.level.compiler, *self.words, *self.level.more]

    def answer(self, status, output=b""):
        try:
            self.connection.sendall(status.to_bytes(4, sys.byteorder) + output)
        except OSError:
            pass  # who asked has been ended
        self.connection.close()


class Compiler:
    def __init__(self, path, jobs):
        self.waiting, self.some = [], threading.Condition()
        self.line = socket.socket(socket.AF_UNIX)
        self.line.bind(path)
        self.line.listen(256)
        for _ in range(jobs):
            threading.Thread(target=self.work, daemon=True).start()

    def listen(self):
        while True:
            connection, _ = self.line.accept()
            try:
                request = Request(connection)
            except (ConnectionError, OSError):
                continue
            with self.some:
                self.waiting.append(request)
                self.some.notify()

    def work(self):
        while True:
            with self.some:
                while not self.waiting:
                    self.some.wait()
                first = self.waiting[0]
                together = [r for r in self.waiting if r.command == first.command][: first.level.most]
                self.waiting = [r for r in self.waiting if r not in together]
            try:
                self.compile(together)
            except OSError as why:
                for r in together:
                    r.answer(1, str(why).encode())

    def compile(self, together):
        if len(together) > 1 and self.compile_as_one(together):
            return
        for r in together:
            done = subprocess.run(r.command, cwd=r.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            r.answer(done.returncode & 255, done.stdout)

    def compile_as_one(self, together):
        with tempfile.TemporaryDirectory() as folder:
            text = pathlib.Path(folder) / "kernel.cpp"
            text.write_text(self.text_of(together))
            if subprocess.run(together[0].command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
                return False
            kernels = (text.parent / "kernel.so").read_bytes()
        at = kernels.index(MARK) + len(MARK)
        for number, r in enumerate(together):
            try:
                (pathlib.Path(r.folder) / "kernel.so").write_bytes(kernels[:at] + bytes([number]) + kernels[at + 1 :])
            except OSError:
                pass  # its folder is gone with who asked
            r.answer(0)
        return True

    @staticmethod
    def text_of(together):
        lines = [f'__attribute__((used)) static volatile const char which[] = "{MARK.decode()}\\377";']
        for number, r in enumerate(together):
            lines += [f"#undef TW_KERNEL_ABI\n#define tw_entry tw_entry_{number}", f"namespace kernel_{number} {{",
                      f'#include "{r.folder}/kernel.cpp"', "}", "#undef tw_entry"]  # fmt: skip
        cases = [f"    case {n}: return kernel_{n}::tw_entry_{n}((const kernel_{n}::tw_call*)call);" for n in range(len(together))]
        lines += ['extern "C" __attribute__((visibility("default"))) int tw_entry(const void* call) {',
                  f"  switch (which[{len(MARK)}]) {{", *cases, "  }", "  return -1;", "}"]  # fmt: skip
        return "\n".join(lines) + "\n"


def available():
    """The levels whose compiler is here."""
    return [level for level in LEVELS if shutil.which(LEVELS[level].compiler)]


def start(scratch):
    """The paths of `ask` by level, whose answers come from a process that ends with this one."""
    folder = pathlib.Path(scratch)
    path = folder / "socket"
    asks = {level: str(folder / level) for level in available()}
    first = asks["quick"]
    subprocess.run(["gcc", "-O1", "-x", "c", "-", "-o", first, f'-DSOCKET="{path}"'], input=ASK.encode(), check=True)
    for ask in asks.values():
        if ask != first:
            os.link(first, ask)
    process = subprocess.Popen([sys.executable, __file__, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdout.readline()  # it listens
    started.append(process)
    return asks


started = []  # they live as long as their pipes


def processor_seconds():
    """What the compilers have computed so far."""
    return sum(processor_seconds_of(process.pid) for process in started)


def processor_seconds_of(pid):
    """What a process and its children that have ended have computed."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def end_with(stream):
    stream.read()
    os._exit(0)


if __name__ == "__main__":
    compiler = Compiler(sys.argv[1], os.cpu_count())
    threading.Thread(target=end_with, args=(sys.stdin,), daemon=True).start()
    print("ready", flush=True)
    compiler.listen()
