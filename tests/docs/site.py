"""
What `tox -e docs` finds wrong with pages, with the settings of the real site.
"""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BROKEN = [
    "[x](nosuch.md)",
    "[x](#nosuch-heading)",
    "![x](nosuch.svg)",
    ":py:func:`kgateway.api.nosuch_function`",
    ":py:mod:`kgateway.nosuch_module`",
    ":py:meth:`Context.nosuch_method`",
]


def _page(*lines: str) -> str:
    shown = [f"```{{eval-rst}}\n{line}\n```" if line.startswith((":", "..")) else line for line in lines]
    return "\n\n".join(["# A page", *shown, ""])


def _build(folder: Path, page: str) -> "subprocess.CompletedProcess[str]":
    (folder / "pages").mkdir()
    (folder / "pages" / "index.md").write_text(page)
    folders = (str(folder / "pages"), str(folder / "html"))
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-c", "docs", *folders]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> str:
    """
    The output for a page with all that is broken.
    """
    ended = _build(tmp_path_factory.mktemp("site"), _page(*BROKEN))
    assert ended.returncode == 1
    return ended.stderr


@pytest.mark.parametrize("line", BROKEN)
def test_what_leads_nowhere_is_an_error(line: str, errors: str) -> None:
    """
    Links, images and roles to nothing.
    """
    [target] = [word for word in line.replace("(", "`").replace(")", "`").split("`") if "nosuch" in word]
    assert f"{target.removeprefix('#')}'" in errors or f"{target} " in errors


def test_a_good_page_passes(tmp_path: Path) -> None:
    """
    Links and roles to what is there are no errors.
    """
    ended = _build(tmp_path, _page("[x](#a-page)", ".. py:function:: known", ":py:func:`known`"))
    assert (ended.returncode, ended.stderr) == (0, "")
