"""
The protocol of one operator: lines of JSON in both directions.
"""

import json
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from kgateway.control.protocol import LINE_BYTES, CommandError, ControlProtocol


class Commands:
    """
    Commands that succeed, refuse, fail or take their time.
    """

    def __init__(self) -> None:
        self.waiting: list[Deferred[Any]] = []
        self.cancelled = 0
        self.by_name = {
            "echo": lambda given: given,
            "late": self.late,
            "refuse": self.refuse,
            "break": lambda given: 1 / 0,
            "nonsense": lambda given: object(),
        }

    def late(self, given: dict[str, Any]) -> Deferred[Any]:
        self.waiting.append(Deferred(self._cancel))
        return self.waiting[-1]

    def refuse(self, given: dict[str, Any]) -> None:
        raise CommandError("not today")

    def _cancel(self, deferred: Deferred[Any]) -> None:
        self.cancelled += 1


class ControlProtocolTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.commands = Commands()
        self.connected: set[ControlProtocol] = set()
        self.protocol = ControlProtocol(self.commands.by_name, self.connected)
        self.transport = StringTransport()
        self.protocol.makeConnection(self.transport)

    def answers(self) -> list[dict[str, Any]]:
        """
        The responses since the last call.
        """
        lines = self.transport.value().splitlines()
        self.transport.clear()
        return [json.loads(line) for line in lines]

    def say(self, line: bytes) -> list[dict[str, Any]]:
        """
        Send a line; returns the responses.
        """
        self.protocol.dataReceived(line + b"\n")
        return self.answers()

    def assertRefused(self, answers: list[dict[str, Any]], words: str) -> None:  # named as in unittest
        (answer,) = answers
        assert not answer["ok"]
        assert words in answer["error"]

    def lose(self) -> None:
        self.protocol.connectionLost(Failure(ConnectionDone()))

    def test_a_command_is_answered(self) -> None:
        """
        The command gets the line's arguments, and its result is sent in one line.
        """
        answers = self.say(b'{"command": "echo", "limit": 20}')
        assert answers == [{"ok": True, "result": {"limit": 20}}]

    def test_a_line_may_arrive_in_pieces(self) -> None:
        """
        Nothing runs before the end of the line.
        """
        for byte in b'{"command": "echo"}':
            self.protocol.dataReceived(bytes([byte]))
            assert self.transport.value() == b""
        assert self.say(b"") == [{"ok": True, "result": {}}]

    def test_an_invalid_line_is_refused(self) -> None:
        """
        The error shows the form of a command, and the connection remains open.
        """
        for line in (b"", b"why", b"[]", b"{}", b'{"command": 1}', b"\xff", b"[" * 50_000):
            self.assertRefused(self.say(line), '{"command": "why", "limit": 20}')
        assert not self.transport.disconnecting
        assert self.say(b'{"command": "echo"}')[0]["ok"]

    def test_an_unknown_command_gets_a_suggestion(self) -> None:
        self.assertRefused(self.say(b'{"command": "Ecko"}'), "there is no command 'Ecko'; did you mean echo?")

    def test_a_refusal_is_the_error(self) -> None:
        """
        The command's words are sent.
        """
        assert self.say(b'{"command": "refuse"}') == [{"ok": False, "error": "not today"}]

    def test_a_wrong_line_is_marked(self) -> None:
        """
        The operator's program tells its mistakes from what the gateway cannot do.
        """
        for line in (b"why", b'{"command": "ecko"}', b'{"command": "why"}'):
            assert self.say(line)[0]["usage"] is True

    def test_a_command_that_fails_is_logged(self) -> None:
        """
        The operator gets the error, the log has the traceback, and the connection remains open.
        """
        self.assertRefused(self.say(b'{"command": "break"}'), "ZeroDivisionError")
        assert len(self.flushLoggedErrors(ZeroDivisionError)) == 1
        assert self.say(b'{"command": "echo"}')[0]["ok"]

    def test_a_result_that_is_no_json_is_a_failure(self) -> None:
        """
        It is logged, and the operator gets an error.
        """
        self.assertRefused(self.say(b'{"command": "nonsense"}'), "TypeError")
        assert len(self.flushLoggedErrors(TypeError)) == 1

    def test_a_late_result_delays_the_next_command(self) -> None:
        """
        The next command begins after the result of the previous one.
        """
        assert self.say(b'{"command": "late"}\n{"command": "echo"}') == []
        self.commands.waiting[0].callback("at last")
        assert self.answers() == [{"ok": True, "result": "at last"}, {"ok": True, "result": {}}]

    def test_a_disconnect_cancels_the_running_command(self) -> None:
        """
        Nothing is logged.
        """
        self.say(b'{"command": "late"}')
        self.lose()
        assert self.commands.cancelled == 1
        assert self.flushLoggedErrors() == []

    def test_a_disconnect_drops_waiting_commands(self) -> None:
        """
        Commands that wait behind the cancelled one are not begun.
        """
        self.say(b'{"command": "late"}\n{"command": "late"}')
        self.lose()
        assert len(self.commands.waiting) == 1

    def test_a_cancelled_command_ends_the_connection(self) -> None:
        """
        The operator does not wait for a result that will never be sent.
        """
        self.say(b'{"command": "late"}')
        self.commands.waiting[0].errback(CancelledError())
        assert self.transport.disconnecting

    def test_an_endless_line_is_refused(self) -> None:
        """
        Nothing beyond the limit is stored, and the connection ends.
        """
        self.protocol.dataReceived(b" " * LINE_BYTES)
        assert not self.transport.disconnecting
        self.protocol.dataReceived(b" ")
        self.assertRefused(self.answers(), "65536 bytes")
        assert self.transport.disconnecting

    def test_a_long_line_is_refused(self) -> None:
        """
        The limit applies even to a complete line.
        """
        self.assertRefused(self.say(b" " * (LINE_BYTES + 1)), "65536 bytes")
        assert self.transport.disconnecting

    def test_waiting_input_is_bounded(self) -> None:
        """
        Nothing beyond the limit is stored behind a running command.
        """
        self.say(b'{"command": "late"}')
        self.assertRefused(self.say(b'{"command": "late"}\n' * 5_000), "65536 bytes")
        self.commands.waiting[0].callback("too late for the others")
        assert len(self.commands.waiting) == 1

    def test_a_slow_reader_delays_commands(self) -> None:
        """
        Commands wait while the transport is full.
        """
        self.protocol.pauseProducing()
        assert self.say(b'{"command": "echo"}') == []
        self.protocol.resumeProducing()
        assert self.answers() == [{"ok": True, "result": {}}]

    def test_the_transport_reports_when_it_is_full(self) -> None:
        """
        The protocol is its push producer until it disconnects.
        """
        assert self.protocol is self.transport.producer
        assert self.transport.streaming
        self.protocol.hang_up()
        assert self.transport.producer is None

    def test_operators_are_counted(self) -> None:
        """
        An operator counts from its connection to its disconnection.
        """
        assert {self.protocol} == self.connected
        self.lose()
        assert set() == self.connected
