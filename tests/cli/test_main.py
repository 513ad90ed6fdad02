"""
The `kgateway` command.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from kgateway import __version__
from kgateway.cli.main import main

ROOT = Path(__file__).parents[2]


def test_without_a_command_it_says_what_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    """
    Version, state and the table of APIs.
    """
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert f"kgateway {__version__}" in shown
    assert "  3  Metadata                     0-13      9+" in shown


def test_the_protocol_page_is_what_the_tables_say(capsys: pytest.CaptureFixture[str]) -> None:
    """
    `docs/protocol.md` is the output of `kgateway apis --markdown`.
    """
    main(["apis", "--markdown"])
    assert capsys.readouterr().out == (ROOT / "docs" / "protocol.md").read_text()


def test_an_unknown_command_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """
    The error names what there is instead.
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
