"""
The compiled build: the modules and messages that pyproject.toml names for it. `tox -e compiled` makes one.
"""

import re
import subprocess
import sys
import tomllib
from configparser import ConfigParser
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path

import pytest

from kgateway.wire.schema import Message
from tests.packaging.containerfile import ROOT

_COMPILED = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["kgateway"]["compiled"]


def _source(module: str) -> Path:
    return ROOT / f"{module.replace('.', '/')}.py"


def test_the_names_are_in_order() -> None:
    for names in _COMPILED.values():
        assert names == sorted(set(names))


@pytest.mark.parametrize("module", _COMPILED["modules"])
def test_modules_can_be_compiled(module: str) -> None:
    """
    A module in the list exists, and does nothing that compiled modules cannot do: it is no program of `python -m`, and
    it makes no Logger outside of a class, which would look for the name of its module in the frame of its caller.
    """
    assert _source(module).exists(), f"{module} does not exist: take it out of pyproject.toml, or name its new place"
    text = _source(module).read_text()
    assert "__name__ ==" not in text
    assert not re.search(r"^\w+(: \w+)? = Logger\(\)", text, re.MULTILINE), f"write Logger(__name__) in {module}"


def test_types_of_compiled_modules_are_installed() -> None:
    """
    Cython reads the types of a module from a file beside it, and compiles it without types if the file is missing.
    """
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg")
    patterns = setup["options.package_data"]["kgateway"].split()
    files = [str(path.relative_to(ROOT / "kgateway")) for path in (ROOT / "kgateway").rglob("*.pxd")]
    assert [file for file in files if not any(fnmatchcase(file, pattern) for pattern in patterns)] == []
    assert [file for file in files if f"kgateway.{file[:-4].replace('/', '.')}" not in _COMPILED["modules"]] == []


@pytest.mark.parametrize("module", _COMPILED["messages"])
def test_messages_exist(module: str) -> None:
    """
    Each of these modules has a message.
    """
    assert any(isinstance(value, type) and issubclass(value, Message) for value in vars(import_module(module)).values())


def test_messages_need_no_other_package() -> None:
    """
    The build imports them in an environment without the requirements of kgateway.
    """
    script = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import {', '.join(_COMPILED['messages'])}"
    subprocess.run([sys.executable, "-I", "-S", "-c", script], check=True)
