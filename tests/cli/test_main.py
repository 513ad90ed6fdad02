"""
The `kgateway` command.
"""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from kgateway import __version__
from kgateway.cli.commands import COMMANDS, Entry
from kgateway.cli.common.parser import Command, page
from kgateway.cli.main import main

ROOT = Path(__file__).parents[2]


def test_without_a_command_it_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    """
    The version is first, and each command has a line.
    """
    assert main([]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == f"kgateway {__version__}: a Kafka-protocol server in Python on Twisted."
    assert shown[1:4] == ["", "Server:", "  serve          run a gateway in the foreground: `twistd -n kgateway`"]
    assert [line.split()[0] for line in shown if line.startswith("  ")] == [*COMMANDS]
    assert max(map(len, shown)) <= 80


def test_the_help_lists_the_commands_in_groups(capsys: pytest.CaptureFixture[str]) -> None:
    """
    The list is the one that the command alone prints.
    """
    main([])
    listed = capsys.readouterr().out.partition("\n\n")[2]
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    shown = capsys.readouterr().out
    assert end.value.code == 0
    assert shown.startswith("usage: kgateway [-h] [--version] COMMAND ...\n")
    assert shown.endswith(listed)


@pytest.mark.parametrize("arguments", [["--help"], ["--node-id", "one", "-h"]])
def test_the_help_of_serve_is_ours(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    """
    It names the command as users type it, and each setting with its default; wrong options do not matter.
    """
    with pytest.raises(SystemExit) as end:
        main(["serve", *arguments])
    shown = capsys.readouterr().out
    assert end.value.code == 0
    assert shown.startswith("usage: kgateway serve [options]\n")
    assert "  --node-id NUMBER" in shown
    assert "; default 4)" in " ".join(shown.split())


def test_the_table_of_apis_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """
    Each API is a line with its versions.
    """
    assert main(["apis"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("KEY  API ")
    assert ["3", "Metadata", "0-13", "9+"] in map(str.split, shown.splitlines())
    assert max(map(len, shown.splitlines())) <= 80


def test_the_settings_are_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """
    The output is for a terminal, or the page of the documentation.
    """
    module = SimpleNamespace(OPTIONS=page(lambda: "a table", lambda: "a page", dict, "kgateway options"))
    monkeypatch.setitem(sys.modules, "kgateway.cli.options", module)
    main(["options"])
    main(["options", "--markdown"])
    assert capsys.readouterr().out == "a table\na page\n"


@pytest.mark.parametrize("options", [[], ["--version"], ["--listen", "tcp:9092"]])
def test_serve_is_twistd(monkeypatch: pytest.MonkeyPatch, options: list[str]) -> None:
    """
    The command runs in this process, in the foreground, without a pid file, and with all options.
    """
    given: list[list[str]] = []
    monkeypatch.setattr("twisted.scripts.twistd.run", lambda: given.append(sys.argv))
    monkeypatch.setattr("gc.set_threshold", lambda *thresholds: None)  # this process goes on
    monkeypatch.setattr("sys.argv", ["kgateway", "serve", *options])
    assert main() == 0
    assert given == [["kgateway serve", "-n", "--pidfile=", "kgateway", *options]]


def test_a_mistake_in_the_options_of_serve_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    It begins with the command that was typed.
    """
    monkeypatch.setattr("sys.argv", ["kgateway", "serve"])
    with pytest.raises(SystemExit) as end:
        main(["serve", "--lisen", "tcp:9092"])
    assert end.value.code == 2
    assert capsys.readouterr() == ("", "kgateway serve: there is no option --lisen; did you mean --listen?\n")


@pytest.mark.parametrize("arguments", [[], ["clients"], ["why"], ["plugins"], ["loglevel"], ["profile"]])
def test_a_command_starts_fast(arguments: list[str], tmp_path: Path) -> None:
    """
    Neither Twisted nor message tables are imported where they are not needed, nor what completes command lines.
    """
    slow = ("twisted", "kgateway.messages.", "argcomplete")
    report = f"print(*(name for name in sys.modules if name.startswith({slow})))"
    script = (
        f"import atexit, sys; from kgateway.cli.main import main; atexit.register(lambda: {report}); main({arguments})"
    )
    command = [sys.executable, "-c", script]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.stdout.splitlines()[-1] == ""


def test_help_names_the_options_of_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    """
    The help begins with the purpose of the command.
    """
    with pytest.raises(SystemExit) as end:
        main(["why", "--help"])
    assert end.value.code == 0
    shown = capsys.readouterr().out
    assert "show why requests of clients were refused" in shown
    assert "--control-socket PATH" in shown


def test_a_missing_gateway_is_an_error(tmp_path: Path) -> None:
    """
    The error is one line on stderr, with nothing on stdout and exit code 1.
    """
    command = [sys.executable, "-c", "from kgateway.cli.main import main; main()", "loglevel"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    told = "kgateway loglevel: no gateway responds at kgateway.sock: is it running in another folder?"
    assert (run.returncode, run.stdout, run.stderr) == (1, "", f"{told} Use --control-socket\n")


def test_ctrl_c_prints_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The exit code is the one that shells expect.
    """

    def interrupted(options: object) -> list[str]:
        raise KeyboardInterrupt

    monkeypatch.setattr("kgateway.cli.gateway.profile.PROFILE", Command(lambda parser: None, interrupted))
    assert main(["profile"]) == 130


def test_the_protocol_page_matches_the_tables(capsys: pytest.CaptureFixture[str]) -> None:
    """
    `docs/protocol.md` is the output of `kgateway apis --markdown`.
    """
    main(["apis", "--markdown"])
    assert capsys.readouterr().out == (ROOT / "docs" / "protocol.md").read_text()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["topic", "list"], "kgateway: error: there is no command 'topic'; did you mean topics?"),
        (["topics", "lsit"], "kgateway topics: error: there is no command 'lsit'; did you mean list?"),
        (["frobnicate"], "kgateway: error: there is no command 'frobnicate'; kgateway --help lists them"),
        (["stop"], "kgateway: error: there is no command 'stop'; kgateway --help lists them"),
        (["configs", "get"], "kgateway configs: error: there is no command 'get'; kgateway configs --help lists them"),
        (
            ["--bootstrap", "a", "topics", "list"],
            "kgateway topics list: error: options come after the command: kgateway topics list --bootstrap a",
        ),
        (
            ["topics", "alter", "t", "--partitons", "4"],
            "kgateway topics alter: error: there is no option --partitons; did you mean --partitions?",
        ),
        (
            ["groups", "reset-offsets", "g", "--to-earlist"],
            "kgateway groups reset-offsets: error: there is no option --to-earlist; did you mean --to-earliest?",
        ),
        (["log"], "kgateway log: error: name a command: check, dump"),
        (["--versoin"], "kgateway: error: there is no option --versoin; did you mean --version?"),
    ],
)
def test_an_unknown_command_is_refused(capsys: pytest.CaptureFixture[str], given: list[str], says: str) -> None:
    """
    The error suggests a similar one, or says where they are listed.
    """
    with pytest.raises(SystemExit) as end:
        main(given)
    assert (end.value.code, capsys.readouterr().err) == (2, f"{says}\n")


def test_purposes_and_defaults_have_one_form(capsys: pytest.CaptureFixture[str]) -> None:
    """
    A purpose begins with a verb, in lower case; it ends with a full stop only if it has several sentences. A default
    is in parentheses.
    """
    for names in _all_commands(COMMANDS):
        purpose = _entry(names).purpose
        assert purpose[0].islower(), names
        assert purpose.endswith(".") == (". " in purpose), names
        with pytest.raises(SystemExit):
            main([*names, "--help"])
        shown = " ".join(capsys.readouterr().out.split())
        assert names == ("serve",) or "by default" not in shown, names


def _entry(names: tuple[str, ...]) -> Entry:
    name, *below = names
    entry = COMMANDS[name]
    for word in below:
        entry = entry.subcommands[word]
    return entry


def _all_commands(entries: Mapping[str, Entry], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, entry in entries.items():
        yield (*above, name)
        yield from _all_commands(entry.subcommands, (*above, name))


def test_no_help_needs_an_extra(tmp_path: Path) -> None:
    """
    The help of every command and subcommand is printed where only the required packages are installed.
    """
    extras = "'pyspark pyarrow numpy pandas fastavro h2 google OpenSSL service_identity'"
    script = (
        f"import sys; sys.modules.update(dict.fromkeys({extras}.split())); from kgateway.cli.main import main\n"
        "for line in sys.stdin:\n    try:\n        main([*line.split(), '--help'])\n"
        "    except SystemExit as end:\n        assert not end.code, line"
    )
    commands = [" ".join(names) for names in _all_commands(COMMANDS)]
    done = subprocess.run(
        [sys.executable, "-c", script],
        input="\n".join(commands),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    shown = [line.split(" [")[0] for line in done.stdout.splitlines() if line.startswith("usage: ")]
    assert shown == [f"usage: kgateway {command}" for command in commands]


def test_a_closed_pipe_is_no_error() -> None:
    """
    `kgateway | head -1` ends without a traceback.
    """
    script = "import sys; from kgateway.cli.main import main; sys.exit(main())"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert process.stderr.read() == b""
