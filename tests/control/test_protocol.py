"""
One operator: lines of JSON in and out.
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
    Some that answer, refuse, fail or take their time.
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
        What was said since the last time.
        """
        lines = self.transport.value().splitlines()
        self.transport.clear()
        return [json.loads(line) for line in lines]

    def say(self, line: bytes) -> list[dict[str, Any]]:
        """
        A line, and the answers.
        """
        self.protocol.dataReceived(line + b"\n")
        return self.answers()

    def assertRefused(self, answers: list[dict[str, Any]], words: str) -> None:  # as unittest has it
        (answer,) = answers
        assert not answer["ok"]
        assert words in answer["error"]

    def lose(self) -> None:
        """
        The operator goes.
        """
        self.protocol.connectionLost(Failure(ConnectionDone()))

    def test_a_command_is_answered(self) -> None:
        """
        It gets what stands beside its name, and its result is sent in one line.
        """
        answers = self.say(b'{"command": "echo", "limit": 20}')
        assert answers == [{"ok": True, "result": {"limit": 20}}]

    def test_a_line_may_come_in_pieces(self) -> None:
        """
        Nothing is done before its end.
        """
        for byte in b'{"command": "echo"}':
            self.protocol.dataReceived(bytes([byte]))
            assert self.transport.value() == b""
        assert self.say(b"") == [{"ok": True, "result": {}}]

    def test_what_is_no_command_is_refused(self) -> None:
        """
        The error shows how a command looks, and the connection stays.
        """
        for line in (b"", b"why", b"[]", b"{}", b'{"command": 1}', b"\xff", b"[" * 50_000):
            self.assertRefused(self.say(line), '{"command": "why", "limit": 20}')
        assert not self.transport.disconnecting
        assert self.say(b'{"command": "echo"}')[0]["ok"]

    def test_an_unknown_command_names_the_nearest(self) -> None:
        """
        Whoever mistypes is told what may have been meant.
        """
        self.assertRefused(self.say(b'{"command": "Ecko"}'), "there is no command 'Ecko'; the nearest is echo")

    def test_a_command_that_refuses_says_why(self) -> None:
        """
        Its words are the error.
        """
        assert self.say(b'{"command": "refuse"}') == [{"ok": False, "error": "not today"}]

    def test_a_command_that_fails_is_logged(self) -> None:
        """
        The operator is told that it failed, the log has the traceback, and the connection stays.
        """
        self.assertRefused(self.say(b'{"command": "break"}'), "ZeroDivisionError")
        assert len(self.flushLoggedErrors(ZeroDivisionError)) == 1
        assert self.say(b'{"command": "echo"}')[0]["ok"]

    def test_a_result_that_json_has_no_form_for_is_a_failure(self) -> None:
        """
        It is logged, and the operator told.
        """
        self.assertRefused(self.say(b'{"command": "nonsense"}'), "TypeError")
        assert len(self.flushLoggedErrors(TypeError)) == 1

    def test_a_late_answer_comes_late(self) -> None:
        """
        The next command is begun when the one before it is answered.
        """
        assert self.say(b'{"command": "late"}\n{"command": "echo"}') == []
        self.commands.waiting[0].callback("at last")
        assert self.answers() == [{"ok": True, "result": "at last"}, {"ok": True, "result": {}}]

    def test_who_goes_cancels_what_is_under_way(self) -> None:
        """
        The command is cancelled and nothing is logged.
        """
        self.say(b'{"command": "late"}')
        self.lose()
        assert self.commands.cancelled == 1
        assert self.flushLoggedErrors() == []

    def test_who_goes_leaves_the_rest_undone(self) -> None:
        """
        Commands that wait behind the cancelled one are not begun.
        """
        self.say(b'{"command": "late"}\n{"command": "late"}')
        self.lose()
        assert len(self.commands.waiting) == 1

    def test_a_command_that_is_cancelled_ends_the_connection(self) -> None:
        """
        The operator does not wait for an answer that will not come.
        """
        self.say(b'{"command": "late"}')
        self.commands.waiting[0].errback(CancelledError())
        assert self.transport.disconnecting

    def test_a_line_without_end_is_refused(self) -> None:
        """
        Past the bound nothing more is held, and the connection ends.
        """
        self.protocol.dataReceived(b" " * LINE_BYTES)
        assert not self.transport.disconnecting
        self.protocol.dataReceived(b" ")
        self.assertRefused(self.answers(), "65536 bytes")
        assert self.transport.disconnecting

    def test_a_long_line_is_refused_although_it_ends(self) -> None:
        """
        The bound holds for a line that comes at once.
        """
        self.assertRefused(self.say(b" " * (LINE_BYTES + 1)), "65536 bytes")
        assert self.transport.disconnecting

    def test_what_waits_is_bounded(self) -> None:
        """
        Behind a command under way no more than the bound is held.
        """
        self.say(b'{"command": "late"}')
        self.assertRefused(self.say(b'{"command": "late"}\n' * 5_000), "65536 bytes")
        self.commands.waiting[0].callback("too late for the others")
        assert len(self.commands.waiting) == 1

    def test_who_does_not_read_gets_no_more(self) -> None:
        """
        While the transport is full, commands wait.
        """
        self.protocol.pauseProducing()
        assert self.say(b'{"command": "echo"}') == []
        self.protocol.resumeProducing()
        assert self.answers() == [{"ok": True, "result": {}}]

    def test_the_transport_tells_when_it_is_full(self) -> None:
        """
        The protocol is its push producer, until it hangs up.
        """
        assert self.protocol is self.transport.producer
        assert self.transport.streaming
        self.protocol.hang_up()
        assert self.transport.producer is None

    def test_who_is_connected_is_known(self) -> None:
        """
        From the first moment to the last.
        """
        assert {self.protocol} == self.connected
        self.lose()
        assert set() == self.connected
