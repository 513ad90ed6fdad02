"""
The pages match what the project does.
"""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
README = (ROOT / "README.md").read_text()
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()


def _blocks(page: str, language: str) -> list[str]:
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    return [text for written, text in fenced if written == language]


def test_ci_runs_the_test_command_of_the_readme() -> None:
    """
    The command below its heading is in `.ci/run`, unchanged.
    """
    [test_command] = _blocks(README.partition("## Run the project's own tests\n")[2], "sh")
    assert test_command in (ROOT / ".ci" / "run").read_text()


def test_every_named_environment_is_documented() -> None:
    """
    docs/testing.md has a row for each tox environment; tests/test_ci_plan.py checks that they run.
    """
    page = (ROOT / "docs" / "testing.md").read_text()
    names = [*re.findall(r"^\[testenv:([a-z0-9-]+)\]", (ROOT / "tox.ini").read_text(), re.MULTILINE), "py312", "py313"]
    assert {"lint", "types", "tests", "deep"} < set(names)
    for name in names:
        assert f"| `{name}` |" in page, f"{name} is not in docs/testing.md"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_work(page: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """
    The Python examples of a page run, one after the other, without a complaint of theirs or a library's.
    """
    scope = {"__name__": "example"}
    for example in _blocks(page.read_text(), "python"):
        exec(compile(example, str(page), "exec"), scope)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_the_environment_is_activated_before_its_commands(page: str) -> None:
    """
    A shell finds `kgateway` only in an activated environment.
    """
    before, command, _ = _visible(page).partition("\n$ kgateway ")
    if page == "README.md":
        before = before.rpartition("\n```console\n")[0]
    assert command
    assert ". .venv/bin/activate" in before


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_what_an_example_imports_is_installed_before(page: str) -> None:
    """
    The page says how to install the client of an example, and pytest, for readers who have only kgateway.
    """
    text = _visible(page)
    examples = [example for example in _blocks(text, "py") if "import " in example]
    assert any("confluent_kafka" in example for example in examples)
    for example in examples:
        imported = set(re.findall(r"^(?:from|import) (\w+)", example, re.MULTILINE))
        needed = imported - sys.stdlib_module_names - {"kgateway"} | ({"pytest"} if "\ndef test_" in example else set())
        installed = re.findall(r"pip install ([^`\n]*)", text.partition(example)[0])
        named = {name.replace("-", "_") for names in installed for name in names.split()}
        assert needed <= named, example


def _visible(page: str) -> str:
    return re.sub(r"<!--.*?-->", "", (ROOT / page).read_text(), flags=re.DOTALL)


def test_the_signals_of_a_daemon_are_documented() -> None:
    """
    docs/operations.md says what tests/faults/test_start_and_stop.py sees.
    """
    page = (ROOT / "docs" / "operations.md").read_text()
    rows = dict(re.findall(r"^\| (SIG[\w, ]+) \| (.*) \|$", page, re.MULTILINE))
    assert {signals: effect.split(" ", 1)[0] for signals, effect in rows.items()} == {
        "SIGTERM, SIGINT": "stop,",
        "SIGHUP": "reopen",
        "SIGUSR1": "rotate",
    }
    assert "`kgateway.log` becomes `kgateway.log.1`" in rows["SIGUSR1"]


def test_the_page_says_how_to_get_the_sql_program() -> None:
    """
    docs/seaweedmq.md has the command with which the environment `seaweedmq-sql` builds it, and the versions of Go.
    """
    build = r"^(?:\$ |    )(go build .*) -o (?:\S+) \\\n[> ]+(\S+/weed-sql)$"
    page = (ROOT / "docs" / "seaweedmq.md").read_text()
    [(command, built)] = re.findall(build, (ROOT / "tox.ini").read_text(), re.MULTILINE)
    assert re.findall(build, page, re.MULTILINE) == [(command, built)]
    module = (ROOT / "tests" / "clients" / "weed_sql" / "go.mod").read_text()
    assert f"tool {built}\n" in module
    assert re.findall(r"^go (\S+)$", module, re.MULTILINE) == re.findall(r"Go (\d+\.\d+\.\d+)", page)


@pytest.mark.parametrize(
    "page", [*PAGES, *(ROOT / "examples").rglob("*.md")], ids=lambda page: str(page.relative_to(ROOT))
)
def test_nothing_is_installed_by_its_name(page: Path) -> None:
    """
    No command installs kgateway from an index, where the name is not ours: a path is named instead.
    """
    commands = re.findall(r"^```\w*\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    assert re.findall(r"pip install\b[^#&\n]* [\"']?kgateway\b(?![/.-]).*", "\n".join(commands)) == []


def test_the_architecture_page_names_every_package() -> None:
    """
    docs/architecture.md has each folder of modules, and no others.
    """
    folders = {".".join(path.parent.relative_to(ROOT).parts) for path in (ROOT / "kgateway").rglob("*.py")}
    rows = re.findall(r"^\| (`kgateway\.[^|]*) \|", ARCHITECTURE, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([\w.]+)`", row)}
    assert folders - {"kgateway"} - named == set()
    paths = [ROOT / name.replace(".", "/") for name in named]
    assert [path for path in paths if not path.is_dir() and not path.with_suffix(".py").is_file()] == []


def test_the_architecture_page_names_existing_files() -> None:
    """
    A path on docs/architecture.md is below `kgateway/`, or in `handlers/`.
    """
    paths = re.findall(r"`((?:\w+/)+(?:\w+\.py)?)`", ARCHITECTURE)
    assert len(paths) > 60
    assert [path for path in paths if not (ROOT / "kgateway" / path).exists()] == []


def test_the_glossary_is_short() -> None:
    """
    The four words of durability are defined in at most forty words.
    """
    glossary = ARCHITECTURE.partition("## Glossary")[2].partition("##")[0]
    rows = re.findall(r"^\| (\w+ \| .*) \|$", glossary, re.MULTILINE)[1:]
    assert [row.split()[0] for row in rows] == ["stored", "committed", "synced", "settled"]
    assert sum(len(row.replace("|", "").split()) for row in rows) <= 40
