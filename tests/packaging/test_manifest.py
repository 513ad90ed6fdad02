"""
MANIFEST.in and setup.cfg: what the sdist and the wheel have. `tox -e release` builds both, and looks into them.
"""

import os
import re
import subprocess
from collections.abc import Iterator
from configparser import ConfigParser
from fnmatch import fnmatchcase
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from tests.packaging.containerfile import ROOT

_BY_ITSELF = {"LICENSE", "MANIFEST.in", "README.md", "pyproject.toml", "setup.cfg", "setup.py"}  # of setuptools


def _manifest() -> list[list[str]]:
    return [line.split() for line in (ROOT / "MANIFEST.in").read_text().splitlines()]


def _included(path: str, packages: list[str]) -> bool:
    grafted = {folder for command, *folders in _manifest() if command == "graft" for folder in folders}
    included = [pattern for command, *patterns in _manifest() if command == "include" for pattern in patterns]
    return (
        path.partition("/")[0] in {*grafted, *(name.partition(".")[0] for name in packages)}
        or path in _BY_ITSELF
        or any(fnmatchcase(path, pattern) and path.count("/") == pattern.count("/") for pattern in included)
    )


def _patterns() -> list[str]:
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg")
    assert setup["options"]["packages"] == "find_namespace:"
    assert "py_modules" not in setup["options"]
    return setup["options.packages.find"]["include"].split()


def _folders() -> Iterator[str]:
    """
    All folders that could be namespace packages, as setuptools finds them.
    """
    for folder, names, _ in os.walk(ROOT, followlinks=True):
        names[:] = [name for name in names if re.fullmatch(r"\w+", name)]
        yield from (".".join((Path(folder) / name).relative_to(ROOT).parts) for name in names)


def test_the_sdist_has_every_file() -> None:
    """
    It has each file that git knows, so that tests and the image can be made from it.
    """
    if not (ROOT / ".git").exists():
        pytest.skip("this is not a checkout")
    listed = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines()
    assert [path for path in listed if not _included(path, _patterns())] == []


def test_compiled_modules_are_left_out() -> None:
    """
    Git, the sdist and the image ignore compiled modules that an earlier version of the build left in the checkout.
    """
    name = f"codec{EXTENSION_SUFFIXES[0]}"
    excluded = [pattern for command, *patterns in _manifest() if command == "global-exclude" for pattern in patterns]
    assert any(fnmatchcase(name, pattern) for pattern in excluded)
    for ignored in ".gitignore", ".dockerignore":
        if (ROOT / ignored).exists():
            lines = (ROOT / ignored).read_text().splitlines()
            assert any(fnmatchcase(name, line.removeprefix("**/")) for line in lines), ignored


def test_the_checkout_has_no_compiled_modules() -> None:
    """
    Python would import them instead of the sources, although these are newer.
    """
    if not (ROOT / ".git").exists():
        pytest.skip("this is not a checkout")
    found = [path for top in ("kgateway", "handlers") for path in (ROOT / top).rglob(f"*{EXTENSION_SUFFIXES[0]}")]
    assert found == [], "delete these files"


def test_the_wheel_has_only_our_own_packages() -> None:
    """
    Top-level names such as `handlers` and `tests` belong to the projects of users.
    """
    packages = {name for name in _folders() if any(fnmatchcase(name, pattern) for pattern in _patterns())}
    assert {name for name in packages if not name.startswith("kgateway.")} == {
        "kgateway",
        "pyspark_kgateway",
        "twisted.plugins",
    }
    assert "kgateway.handlers" in packages
