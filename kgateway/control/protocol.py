"""
The server's side of one operator's connection: a line of JSON in, a line of JSON out, one after the other.

    {"command": "why", "limit": 20}
    {"ok": true, "result": ...}
    {"ok": false, "error": "there is no command 'wyh'; did you mean why?", "usage": true}

The other keys beside `command` are its arguments. `usage` marks an error in the line itself. An answer may take time;
an operator who disconnects cancels it.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from twisted.internet.defer import CancelledError, Deferred, maybeDeferred, succeed
from twisted.internet.interfaces import IConsumer, IPushProducer, ITransport
from twisted.internet.protocol import Protocol, connectionDone
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from kgateway.log_messages import CONTROL_COMMAND_FAILED, CONTROL_CONNECTION_FAILED

LINE_BYTES = 64 * 1024
_LISTED_MAX = 10

Command = Callable[[dict[str, Any]], Any]  # from arguments to what JSON has a form for, or a Deferred of that


class CommandError(Exception):
    """
    The command cannot be executed. The message tells the operator why.
    """


class UsageError(CommandError):
    """
    The command or an argument is wrong.
    """


def unknown(problem: str, word: str, known: Iterable[str]) -> UsageError:
    """
    The error for a word that is not known. It suggests a similar one; without one, a few are listed.
    """
    words = {word.lower(): word for word in known}
    near = get_close_matches(word.lower(), words, n=1)
    if near:
        return UsageError(f"{problem}; did you mean {words[near[0]]}?")
    return UsageError(f"{problem}; choose from {', '.join(words.values())}" if len(words) <= _LISTED_MAX else problem)


class IUnixTransport(ITransport, IConsumer):
    """
    A connection that says when it is full.
    """


@implementer(IPushProducer)
class ControlProtocol(Protocol):
    transport: IUnixTransport
    _log = Logger()

    def __init__(self, commands: Mapping[str, Command], connected: set["ControlProtocol"]) -> None:
        self._commands = commands
        self._connected = connected
        self._received = b""
        self._serving = succeed(None)
        self._full = False

    def connectionMade(self) -> None:
        self._connected.add(self)
        self.transport.registerProducer(self, True)  # it says when the answers are not read

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._connected.discard(self)
        self._serving.cancel()

    def dataReceived(self, data: bytes) -> None:
        self._received += data
        self._serve()
        if len(self._received) > LINE_BYTES:
            self._refuse_line()

    def pauseProducing(self) -> None:
        self._full = True

    def resumeProducing(self) -> None:
        self._full = False
        self._serve()

    def stopProducing(self) -> None:
        self.hang_up()

    def hang_up(self) -> None:
        """
        Write what is buffered, and close the connection.
        """
        self.transport.unregisterProducer()  # with a paused producer Twisted would not close
        self.transport.loseConnection()

    def _serve(self) -> None:
        if self._serving.called:
            self._serving = Deferred.fromCoroutine(self._serve_lines())
            self._serving.addErrback(self._ended)

    def _ended(self, failure: Failure) -> None:
        if not failure.check(CancelledError):
            self._log.failure(CONTROL_CONNECTION_FAILED, failure)
        self.transport.loseConnection()

    async def _serve_lines(self) -> None:
        while b"\n" in self._received and not self._full:
            line, _, self._received = self._received.partition(b"\n")
            if len(line) > LINE_BYTES:
                self._refuse_line()
                break
            answer = await self._answer(line)
            self.transport.write(answer.encode() + b"\n")

    def _refuse_line(self) -> None:
        self._received = b""
        self.transport.write(_refusal(f"a line may have at most {LINE_BYTES} bytes").encode() + b"\n")
        self.hang_up()

    async def _answer(self, line: bytes) -> str:
        try:
            command, arguments = self._read(line)
            return json.dumps({"ok": True, "result": await maybeDeferred(command, arguments)})
        except CommandError as error:
            return _refusal(str(error), isinstance(error, UsageError))
        except CancelledError:
            raise
        except Exception as error:
            self._log.failure(CONTROL_COMMAND_FAILED, line=line)
            return _refusal(f"the command failed, and the gateway's log has the traceback: {error!r}")

    def _read(self, line: bytes) -> tuple[Command, dict[str, Any]]:
        try:
            asked = json.loads(line)
        except (ValueError, RecursionError):
            asked = None
        if not isinstance(asked, dict) or not isinstance(asked.get("command"), str):
            raise UsageError('a line is a JSON object such as {"command": "why", "limit": 20}')
        name = asked.pop("command")
        if name not in self._commands:
            raise unknown(f"there is no command {name!r}", name, self._commands)
        return self._commands[name], asked


def _refusal(error: str, is_usage: bool = False) -> str:
    return json.dumps({"ok": False, "error": error} | ({"usage": True} if is_usage else {}))
