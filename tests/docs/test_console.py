"""
The commands of the pages print what the pages show.
"""

import os
import re
import shlex
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

import pytest
from twisted.python.usage import UsageError
from twisted.scripts._twistd_unix import ServerOptions

from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.cli.common.errors import CommandError
from kgateway.cli.main import parser
from tests.cli.groups.gateway import PARTITIONS, commit, commit_as_nobody, fill, members
from tests.docs.console import APPEARANCE_S, ROOT, Block, Command, File, Session, blocks, differences, matches, parts

FILES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*/README.md")]
PAGES = {str(path.relative_to(ROOT)).removeprefix("docs/"): path.read_text() for path in sorted(FILES)}
# tests/spark/test_console.py runs these: they need Java.
SPARK = {"archives.md", "pipeline.md", "spark-report.md", "spark.md"}

# What is not everywhere, and the environment that has it.
TOOLS = {
    "kcat": (re.compile(r"\bkcat\b"), "tox -e kcat", shutil.which("kcat") is not None),
    "pip": (re.compile(r"\b(pip (un)?install|git\b.* clone)\b"), "tox -e plugin", "DOCS_INSTALL" in os.environ),
    "weed-sql": (re.compile(r"\bgo (build|env)\b|\./weed-sql\b"), "tox -e seaweedmq-sql", "WEED_SQL" in os.environ),
    "kafka": (re.compile(r"\bkafka-[\w-]+\.sh\b"), "tox -e java", "KAFKA_JARS" in os.environ),
}
# What most machines have. Blocks that name these, or a file that they have made, are left out on the others.
PROGRAMS = {"curl": re.compile(r"\bcurl\b"), "openssl": re.compile(r"\bopenssl\b|\.pem\b")}

# The first commands of blocks that no test runs as they stand, and why.
CLUSTER = "needs a SeaweedMQ cluster of other machines; "
ENGINE = "needs an engine for containers; tests/packaging tries what the files say"
ROOTS = "needs root; tests/packaging/test_systemd.py runs the command of the unit"
SPARKS = "PySpark is a download of 450 MB; tox -e spark installs the extra"
TOX = "takes tox, and too long; "
NOT_RUN = {
    ("CONTRIBUTING.md", "python3 -m venv .venv && .venv/bin/pip install -q -e '.[test]' tox"): (
        f"{TOX}.ci/run runs these environments, and the default suite tests/wire"
    ),
    ("README.md", "python3 -m venv .venv && .venv/bin/pip install -q tox && .venv/bin/tox"): (
        f"{TOX}tests/test_docs.py checks that .ci/run runs it"
    ),
    ("archives.md", "pip install -e '.[spark,seaweedmq]'"): SPARKS,
    ("benchmarks.md", "tox -e bench"): f"{TOX}.ci/run runs the environments",
    ("benchmarks.md", "tox -e bench-kafka -- synced latency --results bench/measured/kafka-synced-latency.json"): (
        f"{TOX}the next block generates the page of the results that are there"
    ),
    ("deployment.md", "docker build -f packaging/Containerfile -t kgateway ."): ENGINE,
    ("deployment.md", "docker compose -f packaging/compose.yaml up --build --detach --wait"): ENGINE,
    (
        "deployment.md",
        "ADVERTISED_HOST=kafka.example.org PUBLISHED_ON=0.0.0.0 docker compose -f packaging/compose.yaml up --build"
        " --detach",
    ): ENGINE,
    ("deployment.md", "docker stop kgateway"): ENGINE,
    ("deployment.md", "KGATEWAY_COMPILE=1 pip wheel --no-deps ."): "takes minutes; tox -e compiled builds such a wheel",
    ("deployment.md", "sudo python3 -m venv /opt/kgateway"): ROOTS,
    ("deployment.md", "sudo /opt/kgateway/bin/kgateway why --control-socket /run/kgateway/kgateway.sock"): ROOTS,
    ("deployment.md", "sudo install -d -o kgateway -g kgateway /var/lib/kgateway /var/log/kgateway"): (
        "needs root; operations.md runs a daemon, and tests/packaging/test_logrotate.py the rotation"
    ),
    ("pipeline.md", "pip install -e '.[spark]'"): SPARKS,
    ("plugins.md", "kgateway plugins"): "acme-kgateway is not installed; tox -e plugin has a test of this output",
    ("seaweedmq.md", "twistd -n kgateway --broker seaweedmq:master1:9333,master2:9333"): (
        f"{CLUSTER}`kgateway seaweedmq dev` starts a gateway in this way on the same page"
    ),
    (
        "seaweedmq.md",
        "twistd -n --pidfile= kgateway --broker seaweedmq:master1:9333 --node-id 1 --listen tcp:9092"
        " --advertise gw1:9092",
    ): f"{CLUSTER}tests/faults/seaweedmq/test_two_gateways.py has two gateways before one on this machine",
    ("spark.md", "pip install -e '.[spark]'"): SPARKS,
    ("spark.md", "pip wheel --no-deps . && mv kgateway-*.whl kgateway.zip"): (
        "needs a Spark cluster; tests/spark/test_spark_cluster.py starts one, and ships it what jobs need"
    ),
    ("testing.md", "tox"): f"{TOX}.ci/run runs the environments",
}

FENCED = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
SHELLS = {"bash", "sh", "shell", "zsh"}
LOOKS_LIKE_A_COMMAND = re.compile(
    r"(\w+=\S* )*(\S*/)?"
    r"(apt-get|cd|curl|docker|echo|export|git|journalctl|kafka-\S+|kcat|kgateway|mvn|openssl|pip3?|podman|pytest|python3?"
    r"|spark-submit|sudo|systemctl|tox|twistd|weed|weed-sql) |\w+=\S* $"
)


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


@contextmanager
def filer(session: Session) -> Iterator[None]:
    """
    A gateway, and the filer of archives.md.
    """
    session.serve()
    with DevCluster(session.folder.parent / "seaweedfs") as cluster:
        session.stand_in("filer1:8888", cluster.filer)
        yield


PREPARED = {"archives.md": filer, "groups.md": groups}


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
    absent += [pattern for program, pattern in PROGRAMS.items() if shutil.which(program) is None]

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


def blocks_without_output(page: str) -> list[str]:
    """
    The blocks of commands that show no output.
    """
    return [
        text
        for language, text in FENCED.findall(page)
        if language in SHELLS or (not language and LOOKS_LIKE_A_COMMAND.match(first_command(text) + " "))
    ]


def first_command(text: str) -> str:
    """
    The first line, without its comment.
    """
    return re.sub(r" +# .*| *\\$", "", text.partition("\n")[0]).strip()


@pytest.mark.parametrize("name", PAGES)
def test_all_commands_are_in_console_blocks(name: str) -> None:
    """
    A block of another language does not begin with `$ `.
    """
    fenced = FENCED.findall(PAGES[name])
    assert [text for language, text in fenced if language != "console" and text.startswith("$ ")] == []


@pytest.mark.parametrize("name", PAGES)
def test_all_commands_are_run(name: str) -> None:
    """
    The table has a reason for each block of commands without output. Output that looks like a command is in a block
    of `text`.
    """
    commands = map(first_command, blocks_without_output(PAGES[name]))
    assert [command for command in commands if (name, command) not in NOT_RUN] == []


@pytest.mark.parametrize("name", PAGES)
def test_every_block_has_an_environment(name: str) -> None:
    """
    Each tool is in another one, and none is where the pages about Spark are run.
    """
    needed = [
        [
            tool
            for tool, (pattern, _, _) in TOOLS.items()
            if any(pattern.search(command.text) for command in block.commands)
        ]
        for block in blocks(PAGES[name])
    ]
    assert [tools for tools in needed if len(tools) > (name not in SPARK)] == []


@pytest.mark.parametrize(("name", "command"), NOT_RUN, ids=map(" ".join, NOT_RUN))
def test_the_table_names_blocks_of_the_pages(name: str, command: str) -> None:
    """
    What is listed as not run begins a block.
    """
    page = PAGES[name]
    assert command in [
        *map(first_command, blocks_without_output(page)),
        *(block.commands[0].text for block in blocks(page) if block.commands),
    ]


def commands_of(text: str) -> Iterator[list[str]]:
    """
    The words of each command, without redirections, `sudo`, variables, and the container that it is for.
    """
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        for is_between, group in groupby(lexer, lambda word: set(word) <= set("&|;")):
            words = [] if is_between else list(group)
            if ">" in words:
                words = words[: words.index(">")]
            while words and (words[0] == "sudo" or "=" in words[0]):
                del words[0]
            if words[:1] == ["docker"] and "exec" in words:
                words = words[words.index("exec") + 2 :]
            if words:
                yield [Path(words[0]).name, *words[1:]]


def read(words: list[str]) -> None:
    """
    Read a command of ours as it would be when it is run. The user exists only where the page is followed, and the file
    is where it is installed from.
    """
    words = [re.sub("^(--[ug]id)=.*", r"\1=0", word) for word in words]
    words = [word.replace("/etc/kgateway/", f"{ROOT}/packaging/") for word in words]
    program, *options = words
    if program == "kgateway":
        parser(options).parse_args(options)
    elif program == "twistd" and options != ["--help"]:
        ServerOptions().parseOptions(options)
    elif program == "tox" and options:
        assert options[0] == "-e"
        environments = (ROOT / "tox.ini").read_text()
        assert [name for name in options[1].split(",") if f"[testenv:{name}]" not in environments] == []


COMMANDS = [
    (name, words) for name, page in PAGES.items() for text in blocks_without_output(page) for words in commands_of(text)
]
OURS = [(name, words) for name, words in COMMANDS if words[0] in ("kgateway", "tox", "twistd")]


@pytest.mark.parametrize(("name", "words"), OURS, ids=[f"{name} {' '.join(words)}" for name, words in OURS])
def test_commands_that_are_not_run_can_be_read(name: str, words: list[str]) -> None:
    """
    All options exist, and have values that are allowed.
    """
    read(words)


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
    ("block", "first"),
    [
        ("```sh\nmake coffee  # strong\n```\n", ["make coffee"]),
        ("```\nkgateway why\n```\n", ["kgateway why"]),
        ("   ```\n   PYTHONPATH=. .venv/bin/python a.py\n   ```\n", ["PYTHONPATH=. .venv/bin/python a.py"]),
        ("```\nKGATEWAY_NODE_ID=2\n```\n", ["KGATEWAY_NODE_ID=2"]),
        ("```sh\nkgateway why \\\n    --all\n```\n", ["kgateway why"]),
        ("```text\nkgateway cannot start: it is late\n```\n", []),
        ("```\norders-0/\n```\n", []),
        ("```console\n$ kgateway why\n```\n", []),
        ("```toml\nnode_id = 2\n```\n", []),
    ],
)
def test_blocks_of_commands_are_found(block: str, first: list[str]) -> None:
    assert [first_command(text) for text in blocks_without_output(f"# A page\n\n{block}")] == first


@pytest.mark.parametrize(
    "command",
    [
        "cd / && sudo docker exec kgateway kgateway why --sinse 10m > reasons",
        "kgateway topics crate orders",
        "twistd -n \\\n    kgateway --lisen tcp:9092",
        "twistd -n kgateway --max-idle-ms soon",
        "twistd --pid-file=kgateway.pid kgateway",
        "tox -e banch",
    ],
)
def test_typing_errors_in_commands_are_found(command: str) -> None:
    with pytest.raises((AssertionError, CommandError, SystemExit, UsageError)):
        read(list(commands_of(command))[-1])


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
