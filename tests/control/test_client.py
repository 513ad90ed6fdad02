"""
The client of the control socket. The tests act as the gateway and answer while the client waits.
"""

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kgateway.control.client import ControlError, NoGateway, ask

PATH = "kgateway.sock"


class Listener:
    """
    The gateway's end of the socket.
    """

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(PATH)
        self._socket.listen()

    def answering(self, *pieces: bytes) -> Callable[[float], None]:
        """
        A function for the client to wait with, which answers the first question in these pieces and hangs up.
        """
        left = [pieces]

        def waiting(elapsed_s: float) -> None:
            if left:
                self._answer(left.pop())

        return waiting

    def _answer(self, pieces: tuple[bytes, ...]) -> None:
        connection, _ = self._socket.accept()
        with connection, connection.makefile("rb") as lines:
            self.asked.append(json.loads(lines.readline()))
            for piece in pieces:
                connection.sendall(piece)

    def close(self) -> None:
        """
        Close as a killed process does, leaving the file.
        """
        self._socket.close()


@pytest.fixture
def listener(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Listener]:
    monkeypatch.chdir(tmp_path)
    gateway = Listener()
    yield gateway
    gateway.close()


def refusal(**how: Any) -> str:
    """
    The reason for a missing result.
    """
    with pytest.raises(ControlError) as failed:
        ask(PATH, "why", {}, **how)
    return str(failed.value)


def test_a_result_is_returned(listener: Listener) -> None:
    """
    The command and its arguments are sent.
    """
    waiting = listener.answering(b'{"ok": true, "result": [1, 2]}\n')
    assert ask(PATH, "why", {"limit": 20}, waiting=waiting) == [1, 2]
    assert listener.asked == [{"command": "why", "limit": 20}]


def test_a_result_may_arrive_in_pieces(listener: Listener) -> None:
    """
    It may be long.
    """
    text = "x" * 100_000
    waiting = listener.answering(b'{"ok": true, ', b'"result": "', text.encode(), b'"}', b"\n")
    assert ask(PATH, "why", {}, waiting=waiting) == text


def test_a_refusal_has_the_words_of_the_gateway(listener: Listener) -> None:
    assert refusal(waiting=listener.answering(b'{"ok": false, "error": "not today"}\n')) == "not today"


def test_waiting_is_reported(listener: Listener) -> None:
    """
    The seconds count from the question until the answer.
    """
    seen: list[float] = []
    answering = listener.answering(b'{"ok": true, "result": 1}\n')

    def waiting(elapsed_s: float) -> None:
        seen.append(elapsed_s)
        if len(seen) == 3:
            answering(elapsed_s)

    ask(PATH, "why", {}, waiting=waiting)
    assert len(seen) == 3
    assert 0 <= seen[0] < seen[1] < seen[2]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can open a folder for its path")
def test_a_gateway_in_a_deep_folder_is_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The gateway runs in the folder and has a short path, but the path from elsewhere is too long for a socket address.
    """
    deep = tmp_path.joinpath(*["folder" * 10] * 3)
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    listener = Listener()
    monkeypatch.chdir("/")
    waiting = listener.answering(b'{"ok": true, "result": 1}\n')
    assert ask(str(deep / PATH), "why", {}, waiting=waiting) == 1
    listener.close()
    with pytest.raises(NoGateway, match=f"^no gateway responds at {deep / PATH}: "):
        ask(str(deep / PATH), "why", {})
    with pytest.raises(NoGateway, match=r"^no gateway responds at "):
        ask(str(deep / "gone" / PATH), "why", {})


def test_nobody_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The message names the path, and says how to name another.
    """
    monkeypatch.chdir(tmp_path)
    told = "no gateway responds at kgateway.sock: is it running in another folder? Use --control-socket"
    assert refusal() == told
    Path(PATH).write_text("no socket")
    assert refusal() == told


def test_the_file_of_a_killed_gateway(listener: Listener) -> None:
    """
    The message says that no process answers.
    """
    listener.close()
    assert refusal().startswith("no gateway responds at kgateway.sock")


def test_no_answer_in_time(listener: Listener) -> None:
    """
    The message has the limit.
    """
    assert refusal(patience_s=0) == "the gateway at kgateway.sock did not respond within 0 s"


def test_a_gateway_that_hangs_up(listener: Listener) -> None:
    """
    Half an answer is an error.
    """
    told = "the gateway at kgateway.sock closed the connection without a response"
    assert refusal(waiting=listener.answering(b'{"ok": tr')) == told


@pytest.mark.parametrize("line", [b"220 mail.example.org\n", b"[]\n", b"{}\n", b'{"ok": true}\n', b'{"ok": false}\n'])
def test_an_unknown_protocol(listener: Listener, line: bytes) -> None:
    """
    The answer of another program is not shown.
    """
    assert refusal(waiting=listener.answering(line)) == "the process that responds at kgateway.sock is not a gateway"


def test_a_path_too_long_for_a_socket() -> None:
    """
    The message has the system's reason.
    """
    with pytest.raises(ControlError, match=r"cannot be reached: AF_UNIX path too long"):
        ask("x" * 150, "why", {})


def test_another_users_gateway(listener: Listener) -> None:
    """
    Without permission to open the socket, the error names its owner.
    """
    Path(PATH).chmod(0)
    as_nobody = "os.getuid() or os.setuid(65534)"  # root may open any file
    script = f"import os; from kgateway.control.client import ask; {as_nobody}; ask('{PATH}', 'why', {{}})"
    asked = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "the gateway at kgateway.sock belongs to another user: run the command as that user" in asked.stderr


def test_the_client_imports_no_twisted() -> None:
    """
    A command starts fast.
    """
    count = "import sys, kgateway.control.client; print(sum(name.startswith('twisted') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", count], capture_output=True, check=True).stdout == b"0\n"
