"""
A wheel with compiled modules: which modules are in it, and which are used.

These tests are not among the default ones, because they need such a wheel: `tox -e compiled` builds and installs it.
"""

import os
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

import pytest

from kgateway import __version__
from kgateway.compilation import form
from kgateway.messages.produce import ProduceRequest, ProduceResponse
from kgateway.testing.kafka import Kafka
from kgateway.wire.decoding import DecoderWriter
from kgateway.wire.encoding import EncoderWriter
from kgateway.wire.native_functions import MODULE
from tests.packaging.containerfile import ROOT

_COMPILED = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["kgateway"]["compiled"]
_BIN = Path(sys.executable).parent
_LOADED = """
import sys
from importlib import import_module

for name in sys.argv[1:]:
    import_module(name)
print(*(module.__file__ for name, module in sys.modules.items() if name.startswith("kgateway.")))
"""


def _output(command: Sequence[str | Path], pure: bool) -> str:
    variables = {name: value for name, value in os.environ.items() if name != "KGATEWAY_PURE"}
    return subprocess.check_output(command, text=True, env=variables | {"KGATEWAY_PURE": "1"} if pure else variables)


@pytest.mark.parametrize("module", [*_COMPILED["modules"], MODULE])
def test_modules_are_compiled(module: str) -> None:
    spec = find_spec(module)
    assert spec
    assert str(spec.origin).endswith(EXTENSION_SUFFIXES[0])


def test_generated_functions_are_compiled() -> None:
    """
    The codec finds them, because the tables are those of the build.
    """
    for writer in DecoderWriter(ProduceRequest, 9), EncoderWriter(ProduceResponse, 9):
        assert type(writer.write().function).__name__ == "cython_function_or_method"


def test_the_wheel_has_every_source() -> None:
    """
    A compiled module stands beside its source, which KGATEWAY_PURE=1 imports. The generated functions have no source.
    """
    [wheel] = Path(os.environ["COMPILED_FILES"]).glob("*.whl")
    names = ZipFile(wheel).namelist()
    compiled = {name.partition(".")[0] for name in names if name.endswith(EXTENSION_SUFFIXES[0])}
    assert compiled - {name.removesuffix(".py") for name in names} == {MODULE.replace(".", "/")}
    assert wheel.name.split("-")[2:4] == [f"cp{sys.version_info.major}{sys.version_info.minor}"] * 2


@pytest.mark.parametrize(("pure", "name"), [(False, "compiled"), (True, "pure Python")])
@pytest.mark.parametrize(
    "command",
    [
        [_BIN / "kgateway", "--version"],
        [_BIN / "kgateway", "serve", "--version"],
        [_BIN / "python", "-m", "kgateway", "--version"],
        [_BIN / "twistd", "kgateway", "--version"],
    ],
    ids=lambda command: " ".join(command[1:]),
)
def test_every_command_says_which_modules_it_uses(command: list[str | Path], pure: bool, name: str) -> None:
    assert _output(command, pure).splitlines()[0] == f"kgateway {__version__} ({name})"


def test_kgateway_pure_imports_sources_only() -> None:
    """
    Otherwise every module of the list is compiled.
    """
    files = {
        pure: _output([sys.executable, "-c", _LOADED, *_COMPILED["modules"]], pure).split() for pure in (False, True)
    }
    assert len([file for file in files[False] if file.endswith(".so")]) >= len(_COMPILED["modules"])
    assert [file for file in files[True] if not file.endswith(".py")] == []


def test_tests_use_compiled_modules() -> None:
    """
    These do, and so does the process that the fixture starts.
    """
    assert form() == "compiled"
    with Kafka() as kafka:
        mapped = Path(f"/proc/{kafka.pid}/maps").read_text()
    assert f"{MODULE.replace('.', '/')}{EXTENSION_SUFFIXES[0]}" in mapped
