"""What `cmake --install` puts under a prefix, as projects of others find it: find_package, FetchContent, pkg-config, and C."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD, CONSUMER = ROOT / "build/release", ROOT / "tests/install"
VERSION = re.search(r'TILEWRIGHT_VERSION "(.*)"', (ROOT / "include/tilewright/version.h").read_text())[1]
ABI = re.search(r"TW_ABI_VERSION (\d+)", (ROOT / "include/tilewright/c_api.h").read_text())[1]
pytestmark = pytest.mark.skipif(not (BUILD / "libtilewright.a").exists() or not shutil.which("cmake"), reason="there is no build to install")


def run(*command, **changed):
    ran = subprocess.run(list(map(str, command)), capture_output=True, text=True, env={**os.environ, **changed})
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    return ran.stdout


def files(folder):
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if not p.is_dir()}


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """Where the components are that others build against."""
    folder = tmp_path_factory.mktemp("installed") / "prefix"
    for component in ("runtime", "dev"):
        run("cmake", "--install", BUILD, "--prefix", folder, "--component", component)
    return folder


@pytest.fixture(scope="module")
def library(prefix):
    """The folder of libraries, which distributions name as they like."""
    return next(prefix.rglob("libtilewright.a")).parent


def test_components(tmp_path):
    run("cmake", "--install", BUILD, "--prefix", tmp_path / "runtime", "--component", "runtime")
    names = {os.path.basename(name) for name in files(tmp_path / "runtime")}
    assert names == {f"libtilewright.so.{ABI}", f"libtilewright.so.{VERSION}"}
    run("cmake", "--install", BUILD, "--prefix", tmp_path / "dev", "--component", "dev")
    dev = files(tmp_path / "dev")
    headers = {f"include/tilewright/{p.name}" for p in (ROOT / "include/tilewright").glob("*.h")}
    assert headers == {name for name in dev if name.startswith("include/")}
    assert {os.path.basename(n) for n in dev} >= {"libtilewright.a", "libtilewright.so", "tilewrightConfig.cmake", "tilewrightConfigVersion.cmake",
                                                  "tilewright.pc", "tilewright-c.pc"}  # fmt: skip
    if (BUILD / "tilewright").exists():
        run("cmake", "--install", BUILD, "--prefix", tmp_path / "tool", "--component", "tool")
        assert files(tmp_path / "tool") == {"bin/tilewright"}
        assert run(tmp_path / "tool/bin/tilewright", "--version") == f"tilewright {VERSION}\n"


def test_the_shared_library_has_the_version_of_its_abi(library):
    dynamic = run("readelf", "-d", library / "libtilewright.so")
    assert f"Library soname: [libtilewright.so.{ABI}]" in dynamic
    exported = run("nm", "-D", "--defined-only", library / "libtilewright.so").split("\n")
    names = {row.split()[-1] for row in exported if row}
    assert names and all(name.startswith("tw_") for name in names)


@pytest.mark.parametrize("header", sorted(p.name for p in (ROOT / "include/tilewright").glob("*.h")))
def test_each_header_stands_alone(prefix, header, tmp_path):
    source = tmp_path / "alone.cpp"
    source.write_text(f"#include <tilewright/{header}>\n#include <tilewright/{header}>\n")
    run("c++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", f"-I{prefix}/include", source)
    if header in ("c_api.h", "version.h"):
        source.write_text(f"#include <tilewright/{header}>\nint main(void) {{ return 0; }}\n")
        run("cc", "-x", "c", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", f"-I{prefix}/include", source)


def configured(tmp_path, how, *options):
    run("cmake", "-S", CONSUMER, "-B", tmp_path / how, "-G", "Ninja", f"-DHOW={how}", *options)
    return tmp_path / how


def test_find_package(prefix, tmp_path):
    folder = configured(tmp_path, "find", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", folder)
    assert run(folder / "app") == f"right, with tilewright {VERSION}\n"
    run("cmake", "--install", folder, "--prefix", tmp_path / "theirs")
    assert files(tmp_path / "theirs") == {"bin/app"}


def test_find_package_of_a_program_in_c(prefix, tmp_path):
    folder = configured(tmp_path, "c", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", folder)
    assert run(folder / "app") == f"right, with ABI {ABI}: parse\n"


def test_find_package_of_another_version(prefix, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(app LANGUAGES C)\nfind_package(tilewright 9.9 REQUIRED)\n")
    ran = subprocess.run(["cmake", "-S", tmp_path, "-B", tmp_path / "b", f"-DCMAKE_PREFIX_PATH={prefix}"], capture_output=True, text=True)
    assert ran.returncode != 0 and f"version: {VERSION}" in ran.stderr


@pytest.mark.parametrize("name, source", [("tilewright", "app.cpp"), ("tilewright-c", "app.c")])
def test_pkg_config(prefix, library, tmp_path, name, source):
    path = {"PKG_CONFIG_PATH": str(library / "pkgconfig")}
    assert run("pkg-config", "--modversion", name, **path) == f"{VERSION}\n"
    flags = run("pkg-config", "--cflags", "--libs", name, **path).split()
    compiler = ["c++", "-std=c++20"] if source == "app.cpp" else ["cc", "-std=c99"]
    run(*compiler, CONSUMER / source, *flags, "-o", tmp_path / "app")
    assert run(tmp_path / "app", LD_LIBRARY_PATH=str(library)).startswith("right, with ")


def test_fetch_content(tmp_path):
    """The tree as a part of another project. To build all of it takes minutes: what would be built is asked for."""
    folder = configured(tmp_path, "fetch", f"-DTREE={ROOT}", "-DCMAKE_DISABLE_FIND_PACKAGE_CLI11=ON", "-DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON",
                        "-DCMAKE_DISABLE_FIND_PACKAGE_benchmark=ON", "-DCMAKE_DISABLE_FIND_PACKAGE_Python3=ON")  # fmt: skip
    plan = run("ninja", "-C", folder, "-t", "commands", "all")
    sources = set(re.findall(r" -c (\S+)", plan))
    ours = {pathlib.Path(s).relative_to(ROOT).parts[0] for s in sources if s.startswith(f"{ROOT}/") and not s.startswith(str(CONSUMER))}
    assert ours == {"kernels", "src"} and not any("/driver/tool/" in s for s in sources)
    assert "-Werror" not in plan and "-lfmt" not in plan and "libfmt" not in plan
    run("ninja", "-C", folder, "CMakeFiles/app.dir/app.cpp.o")
    rules = "".join(p.read_text() for p in folder.rglob("cmake_install.cmake"))
    assert "/app" in rules and "libtilewright" not in rules


def test_packages_that_are_missing_are_named_at_once(tmp_path):
    disabled = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in ("fmt", "nlohmann_json", "CLI11", "Python3")]
    ran = subprocess.run(["cmake", "-S", ROOT, "-B", tmp_path, "-G", "Ninja", *disabled], capture_output=True, text=True)
    said = " ".join(ran.stderr.split())
    assert ran.returncode != 0 and "On Debian, as root: apt-get install libfmt-dev nlohmann-json3-dev libcli11-dev python3-dev" in said, said


def test_versions_agree():
    numbers = [re.search(rf"TILEWRIGHT_VERSION_{part} (\d+)", (ROOT / "include/tilewright/version.h").read_text())[1] for part in ("MAJOR", "MINOR", "PATCH")]
    assert ".".join(numbers) == VERSION
