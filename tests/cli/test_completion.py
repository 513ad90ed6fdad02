"""
Completion of command lines by real shells; zsh and fish where they are installed.
"""

import os
import pty
import select
import shutil
import subprocess
import time
from collections.abc import Iterator

import pytest

from tests.cli.tools import PATIENCE_S
from tests.docs.console import Session

_STARTS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], 'eval "$(kgateway completion bash)"'),
    "zsh": (["zsh", "-f", "-i"], 'autoload -U compinit; compinit -u -D; eval "$(kgateway completion zsh)"'),
}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """
    A session with a gateway that has topics and a group, and a cluster that does not answer.
    """
    with Session(tmp_path_factory.mktemp("completion")) as session:
        session.serve("--broker memory: --group-initial-rebalance-delay-ms 0")
        line = "kgateway topics create orders outbox billing && kgateway consume orders --group report -q"
        assert session.run(line)[0] == 0
        (session.folder / "kgateway.toml").write_text('[clusters.none]\nbootstrap = "127.0.0.1:1"\n')
        yield session


def completed(session: Session, line: str) -> list[str]:
    """
    What bash shows for the word at the end of the line.
    """
    script = (
        f'eval "$(kgateway completion bash)"; COMP_LINE="{line}"; COMP_POINT=${{#COMP_LINE}}; COMP_TYPE=9\n'
        "_python_argcomplete kgateway 2>/dev/null; printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    (session.folder / "completion").write_text(script)
    code, told = session.run("bash completion")
    assert code == 0
    return sorted(word.strip() for word in told.split())


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("kgateway to", ["topic-configs", "topics"]),
        ("kgateway topics de", ["delete", "delete-records", "describe"]),
        ("kgateway consume orders --bo", ["--bootstrap", "--bootstrap-server"]),
        ("kgateway serve --lis", ["--listen"]),
        ("kgateway serve --log-level ", ["critical", "debug", "error", "info", "warn"]),
        ("kgateway produce orders --acks ", ["0", "1", "all"]),
        ("kgateway topics describe ", ["billing", "orders", "outbox"]),
        ("kgateway topics describe orders o", ["orders", "outbox"]),
        ("kgateway topics delete-records -t b", ["billing"]),
        ("kgateway consume -p 1 -G ", ["report"]),
        ("kgateway groups describe r", ["report"]),
        ("kgateway configs describe topic ou", ["outbox"]),
        ("kgateway log check compl", ["completion"]),
        ("kgateway produce o", ["orders", "outbox"]),
        ("kgateway produce ", ["billing", "orders", "outbox"]),
        ("kgateway produce orders compl", ["completion"]),
        ("kgateway topics list --cluster ", ["none"]),
        ("kgateway topics create o", []),
        ("kgateway configs set topic orders retention.", ["retention.bytes=", "retention.ms="]),
        ("kgateway configs unset topic orders segment.b", ["segment.bytes"]),
        ("kgateway configs set -b 127.0.0.1:1 group report consumer.h", ["consumer.heartbeat.interval.ms="]),
        ("kgateway configs set broker 1 num.par", ["num.partitions="]),
        ("kgateway topics create orders --config segment.m", ["segment.ms="]),
        ("kgateway consume -b 127.0.0.1:1 o", []),
        ("kgateway consume --cluster none o", []),
    ],
)
def test_bash_completes(session: Session, line: str, words: list[str]) -> None:
    """
    Commands, options, words, files, clusters, and the names that the cluster has; nothing if it does not answer.
    """
    assert completed(session, line) == words


@pytest.mark.parametrize("name", [*_STARTS])
def test_the_tab_key_completes(session: Session, name: str) -> None:
    """
    In an interactive shell the completed line runs.
    """
    if not shutil.which(name):
        pytest.skip(f"there is no {name}")
    command, setup = _STARTS[name]
    ours, theirs = pty.openpty()
    environ = {**session.environment(), "TERM": "dumb", "HISTFILE": "/dev/null"}
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environ, cwd=session.folder, start_new_session=True
    ) as process:
        try:
            os.write(ours, f"{setup}; echo re''ady\n".encode())
            read_until(ours, "ready\r\n")
            os.write(ours, b"kgateway topics desc\tout\t\n")
            assert "outbox: " in read_until(ours, "partitions, ")
        finally:
            process.kill()
            os.close(ours)
            os.close(theirs)


def test_fish_completes(session: Session) -> None:
    """
    Fish asks for the completions of a line.
    """
    if not shutil.which("fish"):
        pytest.skip("there is no fish")
    for line, words in (("kgateway topics desc", ["describe"]), ("kgateway consume o", ["orders", "outbox"])):
        code, told = session.run(f"fish --no-config -c 'kgateway completion fish | source; complete -C \"{line}\"'")
        assert (code, sorted(word.split("\t")[0] for word in told.splitlines())) == (0, words)


def read_until(terminal: int, text: str) -> str:
    shown, deadline = "", time.monotonic() + PATIENCE_S
    while text not in shown:
        readable, _, _ = select.select([terminal], [], [], max(0, deadline - time.monotonic()))
        assert readable, shown
        shown += os.read(terminal, 4096).decode(errors="replace")
    return shown
