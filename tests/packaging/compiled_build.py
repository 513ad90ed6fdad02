"""
The compiled build: what it refuses, what it removes, and which wheels cibuildwheel would build.

These tests are not among the default ones, because pip downloads what a build requires: `tox -e compiled` runs them.
"""

import os
import re
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.packaging.containerfile import ROOT

_BUILT = ("LICENSE", "README.md", "handlers", "kgateway", "pyproject.toml", "pyspark_kgateway", "setup.cfg", "setup.py")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """
    What a build needs, with two modules and one message to compile.
    """
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in _BUILT:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.so")
            shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=ignored)
        else:
            shutil.copy(ROOT / name, folder)
    _list(folder, "kgateway.wire.frames", "kgateway.wire.varints")
    return folder


def _list(checkout: Path, *modules: str) -> None:
    path = checkout / "pyproject.toml"
    before, _, rest = path.read_text().partition("modules = ")
    lists = f"modules = {list(modules)}\nmessages = ['kgateway.wire.headers']\n\n"
    path.write_text(before + lists + rest[rest.index("[tool.cibuildwheel]") :])


def _pip(checkout: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", *arguments]
    variables = os.environ | {"KGATEWAY_COMPILE": "1"} | environment
    return subprocess.run(command, cwd=checkout, env=variables, capture_output=True, text=True, check=False)


def _compiled(folder: Path) -> set[str]:
    """
    The compiled modules of the only wheel.
    """
    [wheel] = folder.glob("*.whl")
    names = ZipFile(wheel).namelist()
    return {name.partition(".")[0] for name in names if name.endswith(EXTENSION_SUFFIXES[0])}


def test_an_editable_installation_is_refused(checkout: Path) -> None:
    """
    Compiled modules in a checkout would hide its sources. The message says what to do instead.
    """
    before = {*checkout.rglob(f"*{EXTENSION_SUFFIXES[0]}")}
    done = _pip(checkout, "install", "--no-deps", "--editable", ".")
    assert done.returncode != 0
    assert "An editable installation uses the sources" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert {*checkout.rglob(f"*{EXTENSION_SUFFIXES[0]}")} == before == set()


@pytest.mark.parametrize("value", ["banana", " 1", ""])
def test_only_booleans_are_accepted(checkout: Path, value: str) -> None:
    """
    The value is not taken for "no".
    """
    done = _pip(checkout, "wheel", "--no-deps", ".", KGATEWAY_COMPILE=value)
    assert done.returncode != 0
    assert f"KGATEWAY_COMPILE is {value!r}: it must be yes or no\n" in done.stdout + done.stderr


def test_a_missing_compiler_is_reported_once(checkout: Path) -> None:
    """
    The compiler is tried first. The message says that a build without compiled modules needs none.
    """
    done = _pip(checkout, "wheel", "--no-deps", ".", CC="no-such-compiler")
    output = done.stdout + done.stderr
    assert done.returncode != 0
    assert "Unset KGATEWAY_COMPILE to build without compiled" in output
    assert output.count("no-such-compiler") < 5


def test_a_wheel_has_no_modules_of_earlier_builds(checkout: Path, tmp_path: Path) -> None:
    """
    The build folder keeps modules that have since been taken out of the list. "on" compiles, as "1" does.
    """
    native = "kgateway/wire/native"
    for number, modules in enumerate([("frames", "varints"), ("varints",)]):
        _list(checkout, *(f"kgateway.wire.{module}" for module in modules))
        wheels = tmp_path / str(number)
        done = _pip(checkout, "wheel", "--no-deps", "--wheel-dir", str(wheels), ".", KGATEWAY_COMPILE="on")
        assert done.returncode == 0, done.stdout + done.stderr
        assert _compiled(wheels) == {native, *(f"kgateway/wire/{module}" for module in modules)}


@pytest.mark.parametrize(("platform", "machines"), [("linux", "x86_64 aarch64"), ("macos", "x86_64 arm64")])
def test_cibuildwheel_builds_a_wheel_for_each_python(platform: str, machines: str) -> None:
    """
    cibuildwheel reads its section of pyproject.toml, and names the wheels of the Pythons in setup.cfg.
    """
    command = [sys.executable, "-m", "cibuildwheel", "--platform", platform, "--print-build-identifiers", str(ROOT)]
    listed = subprocess.check_output(command, text=True).split()
    named = re.findall(r"Python :: (3)\.(\d+)$", (ROOT / "setup.cfg").read_text(), re.MULTILINE)
    found = {name.replace("manylinux", "linux").replace("macosx", "macos") for name in listed}
    assert found == {f"cp{major}{minor}-{platform}_{machine}" for major, minor in named for machine in machines.split()}
