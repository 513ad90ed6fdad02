"""
The pages about plugins and embedding match the examples.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLUGINS, EMBEDDING = ROOT / "docs" / "plugins.md", ROOT / "docs" / "embedding.md"
SHOWN = re.compile(r"^`(examples/[^`]+)`:\n\n```\w+\n(.*?)^```", re.DOTALL | re.MULTILINE)


def shown(page: Path) -> dict[str, str]:
    """
    The files that a page shows.
    """
    return dict(SHOWN.findall(page.read_text()))


def run(folder: Path, *arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    """
    A run of Python in a folder of its own.
    """
    command, environment = [sys.executable, *arguments], {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("page", [PLUGINS, EMBEDDING], ids=lambda page: page.name)
def test_pages_show_the_examples_verbatim(page: Path) -> None:
    for path, text in shown(page).items():
        assert text == (ROOT / path).read_text(), path


def test_every_plugin_is_shown() -> None:
    """
    The pages have the modules of the examples that they explain, and the files that drop in or install them.
    """
    folders = [ROOT / "examples" / name for name in ("acme-kgateway", "house-rules")]
    modules = [path for folder in folders for path in folder.glob("**/*.py") if path.name != "__init__.py"]
    files = [*modules, *(path for folder in folders for path in folder.glob("pyproject.toml"))]
    assert set(shown(PLUGINS)) == {str(path.relative_to(ROOT)) for path in files}
    assert set(shown(EMBEDDING)) == {"examples/embedded.py"}


def test_the_embedded_example_runs(examples: Path, tmp_path: Path) -> None:
    """
    The example prints what it reads, and ends.
    """
    ended = run(tmp_path, examples / "embedded.py")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    first, *records = ended.stdout.splitlines()
    assert re.fullmatch(r"clients may connect to 127\.0\.0\.1:\d+", first)
    assert records == [
        "offset 0: key b'key', value b'one'",
        "offset 1: key None, value b'two'",
        "high watermark 2, 1 topic",
    ]


def test_tests_of_the_page_pass(tmp_path: Path) -> None:
    """
    pytest runs them where kgateway is installed.
    """
    [text] = [
        text for text in re.findall(r"```python\n(.*?)```", EMBEDDING.read_text(), re.DOTALL) if "def test_" in text
    ]
    (tmp_path / "test_page.py").write_text(text)
    ended = run(tmp_path, "-m", "pytest", "-p", "kgateway.testing.pytest_plugin", "-p", "no:cacheprovider", "-q")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "3 passed" in ended.stdout
