"""
Stdin, stdout and stderr, some of which may be missing or full.
"""

from argparse import Namespace
from collections.abc import Iterator
from contextlib import nullcontext
from io import BytesIO, TextIOWrapper

import pytest

from kgateway.cli.common.errors import CommandError
from kgateway.cli.common.output import cut
from kgateway.cli.common.stdio import confirm
from tests.docs.console import Session


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """
    A session with a gateway that has a topic `orders` with a record.
    """
    with Session(tmp_path_factory.mktemp("standard")) as session:
        session.serve("--broker memory:")
        for line in ("topics create orders --partitions 1", "produce orders -q"):
            assert session.run(f"echo one | kgateway {line}")[0] == 0
        yield session


@pytest.mark.parametrize(
    "command", ["topics list", "configs describe topic orders", "consume orders", "apis", "topics --help"]
)
@pytest.mark.parametrize(
    ("to", "why"), [(">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")], ids=["full", "closed"]
)
def test_an_unwritable_stdout_is_reported_in_a_line(session: Session, command: str, to: str, why: str) -> None:
    """
    A full or closed stdout ends the command with exit code 1.
    """
    named = command.removesuffix(" orders").removesuffix(" topic").removesuffix(" --help")
    told = f"kgateway {named}: stdout cannot be written: {why}\n"
    assert session.run(f"kgateway {command} {to}") == (1, told)


class Keys:
    """
    A terminal at which somebody has pressed these keys.
    """

    def __init__(self, keys: str) -> None:
        self._keys = keys

    def isatty(self) -> bool:
        return True

    def readline(self) -> str:
        if self._keys == "^C":
            raise KeyboardInterrupt
        return self._keys


@pytest.mark.parametrize(
    ("keys", "ends"),
    [("", CommandError), ("n\n", CommandError), ("^C", KeyboardInterrupt), ("y\n", None)],
    ids=["Ctrl-D", "no", "Ctrl-C", "yes"],
)
def test_the_line_of_a_question_is_ended(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], keys: str, ends: type[BaseException] | None
) -> None:
    """
    A terminal ends it when somebody presses Enter, and nobody else does.
    """
    monkeypatch.setattr("sys.stdin", Keys(keys))
    with pytest.raises(ends) if ends else nullcontext():
        confirm(Namespace(yes=False), "delete it")
    assert capsys.readouterr().err == "delete it? [y/N] " + ("" if keys.endswith("\n") else "\n")


def test_stdout_may_be_closed_if_nothing_is_printed(session: Session) -> None:
    """
    Producing with --quiet prints nothing.
    """
    assert session.run("echo two | kgateway produce orders --quiet >&-") == (0, "")
    assert session.run("kgateway consume orders --from -1 -q") == (0, "two\n")


def test_a_closed_stdin_is_reported_in_a_line(session: Session) -> None:
    """
    Only commands that read stdin need it.
    """
    told = "kgateway produce: stdin cannot be read: Bad file descriptor (0 records were delivered)\n"
    assert session.run("kgateway produce orders <&-") == (1, told)
    assert session.run("kgateway topics list --json <&- >/dev/null") == (0, "")


def test_a_closed_stderr_loses_messages(session: Session) -> None:
    """
    The messages are written to no other file, and the command succeeds.
    """
    assert session.run("echo three | kgateway produce orders 2>&-") == (0, "")
    assert session.run("kgateway consume orders --from -1 2>&-") == (0, "three\n")
    assert session.run("kgateway consume nothing 2>&-") == (1, "")


@pytest.mark.parametrize("command", ["list", "describe über"])
def test_what_the_encoding_of_stdout_lacks_is_escaped(session: Session, command: str) -> None:
    assert session.run("kgateway consume orders -n 1 -q --group über")[0] == 0
    code, text = session.run(f"PYTHONIOENCODING=ascii kgateway groups {command}")
    assert (code, "\\xfcber" in text) == (0, True), text


def test_a_cut_text_ends_as_the_encoding_of_stdout_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    for encoding, shown in (("utf-8", "0123456…"), ("ascii", "01234...")):
        monkeypatch.setattr("sys.stdout", TextIOWrapper(BytesIO(), encoding=encoding))
        assert cut("0123456789", 8) == shown
