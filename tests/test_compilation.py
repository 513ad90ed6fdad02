"""
Which form of a module is imported, the compiled one or its source. No compiler is needed: to Python, a file with the
right suffix is a compiled module until it is loaded.
"""

import os
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import kgateway

_FILES = (
    "__init__.py",
    "compilation.py",
    "config/__init__.py",
    "config/kinds.py",
    "plurals.py",
    "wire/__init__.py",
    "wire/varints.py",
    "wire/codec.py",
)
_FORM = "from kgateway.compilation import form; print(form())"


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """
    A part of the package, with compiled modules.
    """
    for name in _FILES:
        target = tmp_path / "kgateway" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(kgateway.__file__).parent / name, target)
    for name in ("plurals", "wire/codec", "wire/varints", "wire/native"):
        (tmp_path / "kgateway" / f"{name}{EXTENSION_SUFFIXES[0]}").touch()
    return tmp_path


def _ended(folder: Path, script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {name: value for name, value in os.environ.items() if name != "KGATEWAY_PURE"} | environment
    return subprocess.run(
        [sys.executable, "-c", script], cwd=folder, env=variables, capture_output=True, text=True, check=False
    )


def _run(folder: Path, script: str, **environment: str) -> str:
    done = _ended(folder, script, **environment)
    return done.stdout.strip() or done.stderr.splitlines()[-1]


def test_compiled_modules_are_preferred(installed: Path) -> None:
    """
    Python imports the compiled module, which is an empty file here.
    """
    assert _run(installed, _FORM) == "compiled"
    assert _run(installed, "import kgateway.wire.varints").startswith("ImportError: ")


def test_kgateway_pure_chooses_the_sources(installed: Path) -> None:
    """
    The source is imported, whether or not Python has seen the folder before. A module without a source is missing.
    """
    assert _run(installed, _FORM, KGATEWAY_PURE="1") == "pure Python"
    for package, module in (("kgateway", "plurals"), ("kgateway.wire", "varints")):
        script = f"from {package} import {module}; print({module}.__file__)"
        source = installed / package.replace(".", "/") / f"{module}.py"
        assert _run(installed, script, KGATEWAY_PURE="1") == str(source)
    missing = _run(installed, "import kgateway.wire.native", KGATEWAY_PURE="1")
    assert missing == "ModuleNotFoundError: No module named 'kgateway.wire.native'"


@pytest.mark.parametrize("value", ["yes", "TRUE", "on"])
def test_kgateway_pure_is_a_boolean(installed: Path, value: str) -> None:
    """
    It has the values that boolean settings have.
    """
    assert _run(installed, _FORM, KGATEWAY_PURE=value) == "pure Python"


@pytest.mark.parametrize("value", ["no", "False", "0"])
def test_kgateway_pure_may_be_off(installed: Path, value: str) -> None:
    assert _run(installed, _FORM, KGATEWAY_PURE=value) == "compiled"


@pytest.mark.parametrize("value", ["banana", " 1", ""])
def test_other_values_are_refused(installed: Path, value: str) -> None:
    """
    The program ends with one line that says what is wrong.
    """
    done = _ended(installed, "import kgateway", KGATEWAY_PURE=value)
    assert done.stderr == f"KGATEWAY_PURE is {value!r}: it must be yes or no\n"
    assert done.returncode == 1


def test_the_choice_costs_nothing_without_the_variable(installed: Path) -> None:
    """
    Only os, which Python has imported anyway, is needed then.
    """
    script = "import sys; before = {*sys.modules}; import kgateway; print({*sys.modules} - before)"
    assert _run(installed, script) == "{'kgateway'}"


def test_the_form_is_compiled_if_any_module_is(installed: Path) -> None:
    """
    No single module decides, whichever is missing.
    """
    for path in (installed / "kgateway").rglob(f"*{EXTENSION_SUFFIXES[0]}"):
        assert _run(installed, _FORM) == "compiled"
        path.unlink()
    assert _run(installed, _FORM) == "pure Python"


def test_other_packages_keep_their_compiled_modules(installed: Path) -> None:
    """
    Only the modules of kgateway are chosen.
    """
    assert _run(installed, "import kgateway, crc32c._crc32c as c; print(c.__file__)", KGATEWAY_PURE="1").endswith(".so")
