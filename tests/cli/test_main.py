"""
The `kgateway` command.
"""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from kgateway import __version__
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
    commands = [line.split()[1] for line in shown if line.startswith("  kgateway ")]
    assert commands == [
        "serve",
        "clients",
        "why",
        "plugins",
        "loglevel",
        "profile",
        "clusters",
        "topics",
        "configs",
        "produce",
        "consume",
        "groups",
        "transactions",
        "log",
        "spark",
        "seaweedmq",
        "options",
        "topic-configs",
        "apis",
    ]
    assert max(map(len, shown)) <= 100


def test_the_table_of_apis_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """
    Each API is a line with its versions.
    """
    assert main(["apis"]) == 0
    assert "  3  Metadata                     0-13      9+\n" in capsys.readouterr().out


def test_the_settings_are_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """
    The output is for a terminal, or the page of the documentation.
    """
    module = SimpleNamespace(OPTIONS=page(lambda: "a table", lambda: "a page", dict))
    monkeypatch.setitem(sys.modules, "kgateway.cli.options", module)
    main(["options"])
    main(["options", "--markdown"])
    assert capsys.readouterr().out == "a table\na page\n"


@pytest.mark.parametrize("options", [[], ["--help"], ["--version"], ["--listen", "tcp:9092"]])
def test_serve_is_twistd(monkeypatch: pytest.MonkeyPatch, options: list[str]) -> None:
    """
    The command runs in this process, in the foreground, without a pid file, and with all options.
    """
    given: list[list[str]] = []
    monkeypatch.setattr("twisted.scripts.twistd.run", lambda: given.append(sys.argv))
    monkeypatch.setattr("sys.argv", ["kgateway", "serve", *options])
    assert main() == 0
    assert given == [["kgateway serve", "-n", "--pidfile=", "kgateway", *options]]


def test_a_mistake_in_the_options_of_serve_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """
    twistd would print the line below a page of help.
    """
    assert main(["serve", "--lisen", "tcp:9092"]) == 2
    assert capsys.readouterr().err == "kgateway serve: there is no option --lisen; did you mean --listen?\n"


@pytest.mark.parametrize("arguments", [[], ["clients"], ["why"], ["plugins"], ["loglevel"], ["profile"]])
def test_a_command_starts_fast(arguments: list[str], tmp_path: Path) -> None:
    """
    Neither Twisted nor message tables are imported where they are not needed.
    """
    report = "print(*(name for name in sys.modules if name.startswith(('twisted', 'kgateway.messages.'))))"
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
    assert "what clients of a running gateway were refused, and why" in shown
    assert "--control-socket PATH" in shown


def test_a_missing_gateway_is_an_error(tmp_path: Path) -> None:
    """
    The error is one line on stderr, with nothing on stdout and exit code 1.
    """
    command = [sys.executable, "-c", "from kgateway.cli.main import main; main()", "loglevel"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    told = "kgateway loglevel: no gateway answers at kgateway.sock: is it running in another folder?"
    assert (run.returncode, run.stdout, run.stderr) == (1, "", f"{told} give --control-socket\n")


def test_ctrl_c_prints_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The exit code is the one that shells expect.
    """

    def interrupted(options: object) -> list[str]:
        raise KeyboardInterrupt

    monkeypatch.setattr("kgateway.cli.profile.PROFILE", Command(lambda parser: None, interrupted))
    assert main(["profile"]) == 130


def test_the_protocol_page_matches_the_tables(capsys: pytest.CaptureFixture[str]) -> None:
    """
    `docs/protocol.md` is the output of `kgateway apis --markdown`.
    """
    main(["apis", "--markdown"])
    assert capsys.readouterr().out == (ROOT / "docs" / "protocol.md").read_text()


def test_an_unknown_command_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """
    The error names the commands.
    """
    with pytest.raises(SystemExit) as end:
        main(["apsi"])
    assert end.value.code == 2
    assert "invalid choice: 'apsi'" in capsys.readouterr().err


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
