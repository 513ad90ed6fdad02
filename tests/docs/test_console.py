"""
The commands of the pages print what the pages show.
"""

import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.groups.gateway import PARTITIONS, commit, commit_as_nobody, fill, members
from tests.docs.console import APPEARANCE_S, ROOT, Block, Command, File, Session, blocks, differences, matches, parts

FOLDERS = [ROOT, ROOT / "docs"]
PAGES = {page.name: page.read_text() for folder in FOLDERS for page in sorted(folder.glob("*.md"))}
# tests/spark/test_console.py runs these: they need Java.
SPARK = {"archives.md", "pipeline.md", "spark-report.md", "spark.md"}

# What is not everywhere, and the environment that has it.
TOOLS = {
    "kcat": (re.compile(r"\bkcat\b"), "tox -e kcat", shutil.which("kcat") is not None),
    "pip": (re.compile(r"\b(pip install|git clone)\b"), "tox -e plugin", "DOCS_INSTALL" in os.environ),
    "kafka": (re.compile(r"\bkafka-[\w-]+\.sh\b"), "tox -e java", "KAFKA_JARS" in os.environ),
}

# The first commands of blocks that no test runs, and why.
NOT_RUN = {
    ("plugins.md", "kgateway plugins"): "acme-kgateway is not installed; tox -e plugin has a test of this output",
}


@contextmanager
def groups(session: Session) -> Iterator[None]:
    """
    A gateway with the groups of groups.md, two of them with members.
    """
    session.serve("--broker memory:")
    fill(session.bootstrap)
    commit_as_nobody(session, "report", dict.fromkeys(range(PARTITIONS), 10))
    with (
        members(session, "billing", "billing-1", "billing-2") as billing,
        members(session, "audit", "audit", protocol="consumer") as audit,
    ):
        commit(billing, {0: 25, 1: 20, 2: 25, 3: 12})
        commit(audit, {0: 25, 1: 25, 2: 25})
        yield


PREPARED = {"groups.md": groups}


def tools_of(page: str) -> list[str]:
    commands = [command.text for block in blocks(page) for command in block.commands]
    return [tool for tool, (pattern, _, _) in TOOLS.items() if any(map(pattern.search, commands))]


def is_listed(name: str, block: Block) -> bool:
    return any((name, command.text) in NOT_RUN for command in block.commands)


def run(name: str, folder: Path, present: set[str]) -> None:
    """
    Run the commands of a page, except for blocks that need tools which are not present.
    """
    page = PAGES[name]
    left_out = [block for block in blocks(page) if is_listed(name, block)]
    absent = [pattern for tool, (pattern, _, _) in TOOLS.items() if tool not in present]

    def is_run(command: Command) -> bool:
        return not any(command in block.commands for block in left_out) and not any(
            pattern.search(command.text) for pattern in absent
        )

    found = differences(page, folder, is_run, PREPARED.get(name))
    assert not found, "\n".join(f"{name}, {difference}" for difference in found)


WITH_COMMANDS = [name for name, page in PAGES.items() if blocks(page) and name not in SPARK]
WITH_TOOLS = [(name, tool) for name in WITH_COMMANDS for tool in tools_of(PAGES[name])]


@pytest.mark.parametrize("name", WITH_COMMANDS)
def test_commands_print_what_the_page_shows(name: str, tmp_path: Path) -> None:
    run(name, tmp_path, present=set())


@pytest.mark.parametrize(("name", "tool"), WITH_TOOLS, ids=map("-".join, WITH_TOOLS))
def test_commands_of_other_tools_print_what_the_page_shows(name: str, tool: str, tmp_path: Path) -> None:
    """
    The page is run again with the tool.
    """
    _, environment, is_present = TOOLS[tool]
    if not is_present:
        pytest.skip(f"{tool} is not installed: {environment} has it")
    run(name, tmp_path, present={tool})


@pytest.mark.parametrize("name", PAGES)
def test_all_commands_are_in_console_blocks(name: str) -> None:
    """
    A block of another language does not begin with `$ `.
    """
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", PAGES[name], re.DOTALL | re.MULTILINE)
    assert [text for language, text in fenced if language != "console" and text.startswith("$ ")] == []


@pytest.mark.parametrize(("name", "command"), NOT_RUN, ids=map(" ".join, NOT_RUN))
def test_the_table_names_blocks_of_the_pages(name: str, command: str) -> None:
    """
    What is listed as not run begins a block.
    """
    assert command in [block.commands[0].text for block in blocks(PAGES[name]) if block.commands]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with Session(tmp_path_factory.mktemp("console")) as session:
        yield session


def test_commands_have_their_output_and_their_lines() -> None:
    """
    A command goes on after a backslash, and to the end of a here-document.
    """
    page = "# A page\n\n```console\n$ one \\\n>   two\n1\n\n$ cat <<'END'\n> a\nb\n$ c\nEND\na\nb\n```\n"
    [block] = blocks(page)
    assert [command[:3] for command in block.commands] == [
        ("one \\\n  two", "1\n\n", 4),
        ("cat <<'END'\na\nb\n$ c\nEND", "a\nb\n", 8),
    ]
    for command in block.commands:
        assert page[slice(*command.span)] == command.output


def test_comments_have_commands_and_name_files() -> None:
    """
    They and the visible blocks are the parts of the page, in its order.
    """
    page = (
        "<!-- console\n$ a\n-->\n\n```console\n$ b\n```\n\n<!-- file: c.py -->\n```python\nd()\n```\n\n```\n$ e\n```\n"
    )
    hidden, visible, file = parts(page)
    assert isinstance(hidden, Block)
    assert isinstance(visible, Block)
    assert (hidden.visible, [command.text for command in hidden.commands]) == (False, ["a"])
    assert (visible.visible, [command.text for command in visible.commands]) == (True, ["b"])
    assert file == ("c.py", "d()\n")


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("one\n", "one\n", True),
        ("one\n", "two\n", False),
        ("one\n", "one\ntwo\n", False),
        ("", "", True),
        ("", "one\n", False),
        ("3 records of 4 bytes in 0.1 s: nothing is wrong\n", "3 records of 9 KiB in 2.1 s: nothing is wrong\n", True),
        ("3 records of 4 bytes in 0.1 s: nothing is wrong\n", "3 records of 9 KiB in 2.1 s: 1 finding\n", False),
        ("", "[1]+  Terminated              kgateway serve\n", True),
        ("billing  0\n", "billing    0\n", True),
        ("a\n...\nz\n", "a\nb\nc\nz\n", True),
        ("a\n...\nz\n", "a\nz\n", True),
        ("a ... z\n", "a b z\n", True),
        ("a ... z\n", "a b y\n", False),
        ("at 2026-11-21T18:00:30.123Z, 18:20:41\n", "at 2027-01-01T00:00:00.000Z, 01:02:03\n", True),
        ("offset 5\n", "offset 6\n", False),
        ("wbKlkzwISXaEoi9MKrldLA  audit\n", "zTqhC//TPEZSXQegabc+-Z  audit\n", True),
        ("epoch 2, assignor uniform\n", "epoch 3, assignor range\n", False),
    ],
)
def test_output_is_compared_except_for_what_differs_each_time(shown: str, printed: str, same: bool) -> None:
    assert matches(shown, printed) is same


def test_a_session_is_one_shell(session: Session) -> None:
    """
    Folders, variables and the exit code of the last command are kept; commands read nothing from the session.
    """
    assert session.run("mkdir a && cd a; b='c d'") == (0, "")
    assert session.run('basename "$PWD"; echo "$b"; cat; (exit 3)') == (3, "a\nc d\n")
    assert session.run("echo $?") == (0, "3\n")
    assert session.run("cd ..; echo 'it is") != (0, "")


def test_lasting_commands_are_left_running(session: Session) -> None:
    """
    They are jobs, which can be killed; the output is that before and after an interrupt.
    """
    code, printed = session.start("echo begin; sleep 100 &", "begin\n")
    assert (code, printed) == (None, "begin\n")
    assert session.run("kill -9 %1; wait %1; echo $?")[1].endswith("137\n")
    waits = "trap 'echo end; exit 4' INT; echo begin; while :; do sleep 0.05; done"
    assert session.start(f"({waits})", "begin\n^C\nend\n") == (4, "begin\n^C\nend\n")


def test_a_lasting_command_that_ends_is_not_waited_for(session: Session) -> None:
    assert session.start("(sleep 0.2; echo one) | (cat; sleep 100) &", "one\n") == (None, "one\n")
    began = time.monotonic()
    assert session.start("(echo one; exit 1)", "two\n") == (None, "one\n")
    assert time.monotonic() - began < APPEARANCE_S / 2


def test_addresses_of_the_page_are_replaced(session: Session) -> None:
    """
    Commands have the real one, and the output that of the page.
    """
    session.stand_in("filer1:8888", "127.0.0.1:123")
    assert session.run("address=filer1:8888; echo $address, ${#address}") == (0, "filer1:8888, 13\n")


def test_daemons_end_with_a_session(tmp_path: Path) -> None:
    """
    They have left its processes, but not its folder.
    """
    with Session(tmp_path) as session:
        _, pid = session.start("setsid sh -c 'echo process $$; exec sleep 1000'", "process 1\n")
        os.kill(int(pid.split()[1]), 0)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.split()[1]), 0)


def test_nothing_outlives_a_session(tmp_path: Path) -> None:
    """
    Jobs that ignore the end of their shell are killed with it, and so is a command that hangs.
    """
    with Session(tmp_path) as session:
        _, pid = session.start("(trap '' HUP; echo process $BASHPID; sleep 1000) &", "process 1\n")
        session.write(File("later/name.txt", "127.0.0.1:9092"))
        assert session.run("cat later/name.txt") == (0, "127.0.0.1:9092")
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.split()[1]), 0)


def test_a_page_that_differs_is_refused(tmp_path: Path) -> None:
    """
    Each difference is told, also that of a silent failure; the ports are those of the page.
    """
    page = (
        "```console\n$ kgateway serve\n...\n"
        "2026-11-27T12:00:00+0000 kgateway 1.0 is ready: plaintext on 127.0.0.1:9092; ...\n"
        "$ false\n$ echo one\ntwo\n$ kgateway topics list\nthere are no topics\n```\n"
    )
    assert [told.command.text for told in differences(page, tmp_path)] == ["false", "echo one"]
