"""
The client of the control socket: plain blocking code, for command lines that start fast.
"""

import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_TICK_S = 0.2
_CHUNK_BYTES = 64 * 1024
_ADDRESS_MAX = 107  # bytes of a path in a socket address of Linux


class ControlError(Exception):
    """
    There is no answer, or it is an error. The message is for the operator.
    """


class ControlUsageError(ControlError):
    """
    The command or an argument is wrong.
    """


class NoGateway(ControlError):
    """
    Nobody answers.
    """


def ask(
    path: str,
    command: str,
    arguments: dict[str, Any],
    patience_s: float = 10,
    waiting: Callable[[float], None] = lambda elapsed_s: None,
) -> Any:
    """
    The result of a command. Until it comes, `waiting` is called again and again with the elapsed seconds.
    """
    question = json.dumps({"command": command, **arguments}).encode() + b"\n"
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_TICK_S)
            with _address(path) as address:
                connection.connect(address)
            connection.sendall(question)
            line = _line(connection, path, patience_s, waiting)
    except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError) as error:
        problem = f"no gateway responds at {path}: is it running in another folder? Use --control-socket"
        raise NoGateway(problem) from error
    except PermissionError as error:
        raise ControlError(f"the gateway at {path} belongs to another user: run the command as that user") from error
    except OSError as error:
        raise ControlError(f"the gateway at {path} cannot be reached: {error.strerror or error}") from error
    return _result(line, path)


@contextmanager
def _address(path: str) -> Iterator[str]:
    """
    An address of the socket that is short enough. A gateway may have created it under a relative path.
    """
    if len(os.fsencode(path)) <= _ADDRESS_MAX or sys.platform != "linux":
        yield path
        return
    folder, name = os.path.split(path)
    descriptor = os.open(folder or ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{name}"
    finally:
        os.close(descriptor)


def _line(connection: socket.socket, path: str, patience_s: float, waiting: Callable[[float], None]) -> bytes:
    began = time.monotonic()
    line = bytearray()
    while not line.endswith(b"\n"):
        elapsed = time.monotonic() - began
        if elapsed > patience_s:
            raise NoGateway(f"the gateway at {path} did not respond within {patience_s:g} s")
        waiting(elapsed)
        try:
            data = connection.recv(_CHUNK_BYTES)
        except TimeoutError:
            continue
        if not data:
            raise NoGateway(f"the gateway at {path} closed the connection without a response")
        line += data
    return bytes(line)


def _result(line: bytes, path: str) -> Any:
    try:
        answer = json.loads(line)
        ok, result = answer["ok"], answer["result"] if answer["ok"] else answer["error"]
    except (ValueError, KeyError, TypeError) as error:
        raise ControlError(f"the process that responds at {path} is not a gateway") from error
    if not ok:
        raise ControlUsageError(result) if answer.get("usage") else ControlError(result)
    return result
