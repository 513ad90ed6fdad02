"""
Which Pythons the wheel is tried with.
"""

import os
import re
import sys
from pathlib import Path

import pytest

from tests.packaging import pythons
from tests.packaging.containerfile import ROOT

THIS = "{}.{}".format(*sys.version_info)


def _fake(path: Path, version: str, code: int = 0) -> str:
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho {version}\nexit {code}\n")
    path.chmod(0o755)
    return str(path)


def test_a_python_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    On the PATH, even behind a file of pyenv that starts none, or else among pyenv's own.
    """
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    _fake(tmp_path / "shims" / "python3.98", "")
    on_path = _fake(tmp_path / "bin" / "python3.98", "3.98")
    of_pyenv = _fake(tmp_path / "pyenv" / "versions" / "3.99.1" / "bin" / "python", "3.99")
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path / "shims"), str(tmp_path / "bin")]))
    assert [pythons.found(version) for version in (THIS, "3.98", "3.99", "3.97")] == [
        sys.executable,
        on_path,
        of_pyenv,
        None,
    ]


def test_the_summary_names_them() -> None:
    """
    Those that were tried, and those that are missing.
    """
    assert pythons.told({"3.11": "/usr/bin/python3.11", "3.14": None}) == [
        "tried with Python 3.11 (/usr/bin/python3.11)",
        "missing: 3.14",
    ]


def test_a_release_needs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    `.ci/run all` requires each Python that setup.cfg names, except the newest, which machines may lack.
    """
    [listed] = re.findall(r"PYTHONS=\S*?([\d.,]+)", (ROOT / ".ci" / "run").read_text())
    monkeypatch.setenv("PYTHONS", listed)
    assert pythons.required() == pythons.named()[:-1]
    assert re.search(r"^pass_env =\n(?:    .*\n)*    PYTHONS\n", (ROOT / "tox.ini").read_text(), re.MULTILINE)
