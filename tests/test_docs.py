"""
What the pages say is what is done.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
README = (ROOT / "README.md").read_text()


def _blocks(page: str, language: str) -> list[str]:
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    return [text for written, text in fenced if written == language]


def test_ci_runs_the_test_command_of_the_readme() -> None:
    """
    The second command of the README stands in `.ci/run` as it is.
    """
    _, test_command = _blocks(README, "")
    assert test_command in (ROOT / ".ci" / "run").read_text()


def test_every_named_environment_is_documented_and_run() -> None:
    """
    docs/testing.md has a row for each tox environment beyond the default, and `.ci/run` runs it.
    """
    tox, run = (ROOT / "tox.ini").read_text(), (ROOT / ".ci" / "run").read_text()
    page = (ROOT / "docs" / "testing.md").read_text()
    names = [*re.findall(r"^\[testenv:([a-z0-9-]+)\]", tox, re.MULTILINE), "py312", "py313"]
    assert {"lint", "types", "tests", "deep"} < set(names)
    for name in names:
        assert f"| `{name}` |" in page, f"{name} is not in docs/testing.md"
        assert name in {"lint", "types", "tests"} or re.search(rf"tox .*-e .*\b{name}\b", run), f"{name} is never run"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_work(page: Path) -> None:
    """
    The Python examples of a page run, one after the other.
    """
    scope = {"__name__": "example"}
    for example in _blocks(page.read_text(), "python"):
        exec(compile(example, str(page), "exec"), scope)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """
    A relative link of a page names a file that is there.
    """
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name}: {target}"
