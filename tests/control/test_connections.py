"""
The list of connections for operators.
"""

from functools import partial
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kgateway.control.connections import LIMIT_MAX, SLICE, Connections
from kgateway.control.protocol import CommandError


def client(client_id: str, **facts: Any) -> dict[str, Any]:
    told = {"client_id": client_id, "address": "10.0.0.1:5", "software": "sarama", "listener": "plaintext"}
    return {**told, "since_ms": 0, "idle_s": 0, "requests": 0, "bytes_in": 0, "bytes_out": 0, **facts}


class ConnectionsTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.looked = 0
        self.rows = [client("b", requests=2, since_ms=1), client("a", requests=9, since_ms=2, software="librdkafka")]
        self.connections = Connections(lambda: [partial(self.look, row) for row in self.rows], self.clock)

    def look(self, row: dict[str, Any]) -> dict[str, Any]:
        self.looked += 1
        return row

    def turn(self) -> None:
        """
        Run a turn of the reactor; calls made during it remain for the next.
        """
        call = self.clock.calls.pop(0)
        call.called = 1
        call.func(*call.args, **call.kw)

    def ask(self, **given: Any) -> Deferred[dict[str, Any]]:
        return Deferred.fromCoroutine(self.connections(given))

    def ids(self, **given: Any) -> list[str]:
        return [row["client_id"] for row in self.successResultOf(self.ask(**given))["clients"]]

    def refusal(self, **given: Any) -> str:
        return str(self.failureResultOf(self.ask(**given), CommandError).value)

    def test_they_are_sorted(self) -> None:
        """
        The default order is by id; numbers are sorted from the largest, times of connection from the earliest.
        """
        assert self.ids() == ["a", "b"]
        assert self.ids(sort="since") == ["b", "a"]
        assert self.ids(sort="requests") == ["a", "b"]

    def test_connections_are_filtered(self) -> None:
        """
        Patterns select connections; the result has the number of matches and of all.
        """
        assert self.ids(software="lib*") == ["a"]
        assert self.ids(client="10.0.0.*") == ["a", "b"]
        assert self.ids(client="B") == []
        told = self.successResultOf(self.ask(limit=1))
        assert (told["connected"], told["fitting"], len(told["clients"])) == (2, 2, 1)

    def test_other_work_continues(self) -> None:
        """
        A turn of the reactor examines only some of many connections.
        """
        self.rows = [client(f"{number:05}") for number in range(2 * SLICE + 1)]
        asked = self.ask()
        for looked in (SLICE, 2 * SLICE):
            assert self.looked == looked
            self.assertNoResult(asked)
            self.turn()
        assert len(self.successResultOf(asked)["clients"]) == 2 * SLICE + 1

    def test_a_result_is_bounded(self) -> None:
        self.rows = [client(f"{number:05}") for number in range(LIMIT_MAX + 1)]
        asked = self.ask()
        self.clock.pump([0] * (LIMIT_MAX // SLICE + 1))
        told = self.successResultOf(asked)
        assert (told["fitting"], len(told["clients"])) == (LIMIT_MAX + 1, LIMIT_MAX)

    def test_wrong_arguments_are_refused(self) -> None:
        """
        The refusal is in words for the operator.
        """
        assert self.refusal(sort="request") == "clients cannot be sorted by request; did you mean requests?"
        assert self.refusal(limit=0) == "limit must be a number from 1 to 1000, not 0"
        assert self.refusal(client=7) == "client must be a string, not 7"
        assert self.refusal(colour="red") == "the command takes no colour"
