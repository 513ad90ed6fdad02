"""
The control socket of a running gateway: a file that only its own user may open.

A gateway that was killed leaves its file behind. An existing file may be replaced if a connection to it is refused:
then nobody listens any more.
"""

import os
import socket
import stat
from collections.abc import Mapping
from typing import cast

from twisted.internet.defer import Deferred, maybeDeferred, succeed
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IAddress, IReactorUNIX
from twisted.internet.protocol import ServerFactory
from twisted.internet.unix import Port

from kgateway.control.protocol import Command, ControlProtocol

_CONNECTIONS = 50
_ELSE = "name another path with --control-socket"


class ControlSocketError(Exception):
    """
    The socket cannot be created. The message tells the operator why, and what to do.
    """


class ControlSocketMisplaced(ControlSocketError):
    """
    No socket can ever be at this path.
    """


class ControlSocket:
    def __init__(self, path: str, commands: Mapping[str, Command], reactor: IReactorUNIX) -> None:
        self._path = path
        self._reactor = reactor
        self._factory = _Factory(commands)
        self._port: Port | None = None
        self._file: os.stat_result

    def open(self) -> Deferred[None]:
        return maybeDeferred(self._open)

    def close(self) -> Deferred[None]:
        """
        Stop listening, remove the file, and disconnect the operators.
        """
        port, self._port = self._port, None
        return Deferred.fromCoroutine(self._close(port)) if port else succeed(None)

    def _open(self) -> None:
        _make_room(self._path)
        try:
            port = self._reactor.listenUNIX(self._path, self._factory, mode=0o600)
        except CannotListenError as error:
            raise ControlSocketError(_impossible(self._path, error.socketError)) from error
        self._port = cast(Port, port)
        self._file = os.stat(self._path)

    async def _close(self, port: Port) -> None:
        for connection in tuple(self._factory.connected):
            connection.hang_up()
        if self._has_own_file():
            await maybeDeferred(port.stopListening)
        else:  # stopListening would remove the file, which is gone or belongs to another gateway
            port.stopReading()
            port.socket.close()

    def _has_own_file(self) -> bool:
        try:
            return os.path.samestat(self._file, os.stat(self._path))
        except OSError:
            return False


class _Factory(ServerFactory):
    noisy = False

    def __init__(self, commands: Mapping[str, Command]) -> None:
        self._commands = commands
        self.connected: set[ControlProtocol] = set()

    def buildProtocol(self, addr: IAddress | None) -> ControlProtocol | None:
        full = len(self.connected) >= _CONNECTIONS
        return None if full else ControlProtocol(self._commands, self.connected)

    def logPrefix(self) -> str:
        return "The control socket"


def _make_room(path: str) -> None:
    if not os.path.isdir(os.path.dirname(path) or "."):
        raise ControlSocketMisplaced(f"there is no folder for the control socket {path}: create it, or {_ELSE}")
    try:
        mode = os.lstat(path).st_mode
        if not stat.S_ISSOCK(mode):
            raise ControlSocketMisplaced(f"{path} already exists and is not a socket: {_ELSE}")
        if _answers(path):
            raise ControlSocketError(f"another gateway responds at {path}: {_ELSE}")
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise ControlSocketError(_impossible(path, error)) from error


def _answers(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.setblocking(False)
        try:
            connection.connect(path)
        except ConnectionRefusedError:
            return False
        except BlockingIOError:
            pass  # it is too busy to answer at once
        return True


def _impossible(path: str, error: OSError) -> str:
    # Python has no errno for a path that the system's structure has no room for.
    reason = error.strerror or f"its name has {len(os.fsencode(path))} bytes, too many for a socket"
    return f"no control socket can be created at {path}: {reason}: {_ELSE}"
