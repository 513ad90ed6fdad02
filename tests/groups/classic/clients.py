"""
A classic group that writes into a list, and requests of its members.
"""

from collections.abc import Sequence
from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from kgateway.config.settings import Settings
from kgateway.groups.classic.group import ClassicGroup
from kgateway.groups.classic.requests import JoinRequest, JoinResult, LeavingMember, Protocols, SyncRequest, SyncResult
from kgateway.groups.records import Row
from kgateway.messages.consumer_protocol import ConsumerProtocolSubscription
from kgateway.wire.codec import encode
from kgateway.wire.errors import ErrorCode, KafkaError

START_MS = 1_800_000_000_000
SESSION_MS = 45_000
REBALANCE_MS = 60_000
DELAY_S = 3


def subscription(*topics: str, user_data: bytes | None = None, version: int = 1) -> bytes:
    """
    Subscription metadata of a consumer.
    """
    said = ConsumerProtocolSubscription(topics=list(topics), user_data=user_data)
    return version.to_bytes(2, "big") + encode(said, version)


class Rows:
    """
    The `Write` of a group: it commits rows at once, on `settle`, or never.
    """

    def __init__(self) -> None:
        self.written: list[Row] = []
        self.waits = False
        self.refuses: KafkaError | None = None
        self.waiting: list[Deferred[None]] = []

    def write(self, rows: Sequence[Row]) -> Deferred[None] | None:
        if self.refuses:
            raise self.refuses
        self.written += rows
        if not self.waits:
            return None
        self.waiting.append(Deferred())
        return self.waiting[-1]

    def settle(self, error: Exception | None = None) -> None:
        """
        Let waiting writes succeed or fail.
        """
        waiting, self.waiting = self.waiting, []
        for each in waiting:
            each.callback(None) if error is None else each.errback(error)


class GroupTestCase(SynchronousTestCase):
    """
    One group, `g`, with a clock set by hand.
    """

    settings: dict[str, Any] = {}

    def setUp(self) -> None:
        self.clock = Clock()
        self.rows = Rows()
        self.group = self.made()

    def made(self) -> ClassicGroup:
        return ClassicGroup(
            "g",
            settings=Settings(**self.settings),
            clock=self.clock,
            now_ms=lambda: START_MS + round(self.clock.seconds() * 1000),
            write=self.rows.write,
        )

    def restarted(self) -> ClassicGroup:
        """
        The group as a new process restores it from its rows.
        """
        group = self.made()
        for row in self.rows.written:
            group.replay(row)
        group.loaded()
        return group

    def asking(self, member_id: str = "", **more: Any) -> JoinRequest:
        """
        A join of an old client, which needs no member id first.
        """
        defaults: dict[str, Any] = {
            "client_id": "c",
            "client_host": "/127.0.0.1",
            "session_timeout_ms": SESSION_MS,
            "rebalance_timeout_ms": REBALANCE_MS,
            "protocol_type": "consumer",
            "protocols": {"range": subscription("orders")},
            "takes_member_id": False,
            "can_skip_assignment": False,
        }
        values = {**defaults, **more}
        values["protocols"] = Protocols(values["protocols"].items())
        return JoinRequest(member_id=member_id, **values)

    def join(self, member_id: str = "", **more: Any) -> Deferred[JoinResult]:
        """
        The outcome of a join, now or later.
        """
        return later(self.group.join, self.asking(member_id, **more))

    def sync(
        self, joined: JoinResult, assignments: dict[str, bytes] | None = None, **more: Any
    ) -> Deferred[SyncResult]:
        """
        The sync of a member that has joined.
        """
        values = {"member_id": joined.member_id, "generation": joined.generation, **more}
        return later(self.group.sync, SyncRequest(assignments=tuple((assignments or {}).items()), **values))

    def leave(self, *leavers: str | LeavingMember) -> list[ErrorCode]:
        return self.group.leave([each if isinstance(each, LeavingMember) else LeavingMember(each) for each in leavers])

    def beat(self, joined: JoinResult, instance_id: str | None = None) -> None:
        self.group.heartbeat(joined.member_id, instance_id, joined.generation)

    def members(self, count: int, **more: Any) -> list[JoinResult]:
        """
        Join `count` members without syncing; the first one leads.
        """
        waiting = [self.join(**more) for _ in range(count)]
        self.clock.advance(DELAY_S) if count == 1 else self.wait_for_newcomers()
        return [self.successResultOf(each) for each in waiting]

    def wait_for_newcomers(self) -> None:
        """
        Wait for the initial delay: the first generation begins when nobody has joined for one delay.
        """
        self.clock.advance(DELAY_S)
        self.clock.advance(DELAY_S)

    def stable(self, count: int, **more: Any) -> list[JoinResult]:
        """
        A stable group of `count` members, each with its id as its assignment.
        """
        joined = self.members(count, **more)
        self.sync_all(joined)
        return joined

    def sync_all(self, joined: Sequence[JoinResult]) -> None:
        """
        Sync all members, the leader last.
        """
        everything = {each.member_id: each.member_id.encode() for each in joined}
        for each in sorted(joined, key=lambda each: each.member_id == each.leader):
            self.sync(each, everything if each.member_id == each.leader else None)

    def advance(self, seconds: float, alive: Sequence[JoinResult] = ()) -> None:
        """
        Let time pass while these members send heartbeats, whatever the response.
        """
        left = seconds
        while left > 0:
            step = min(left, 5)
            self.clock.advance(step)
            left -= step
            for each in alive:
                later(self.beat, each).addErrback(lambda failure: failure.trap(KafkaError) and None)

    def assert_refused(self, code: ErrorCode, answer: Deferred[Any]) -> KafkaError:
        """
        Assert that this error is the response, which has arrived.
        """
        error = self.failureResultOf(answer, KafkaError).value
        assert isinstance(error, KafkaError)
        self.assertEqual(code, error.code)
        return error

    def assert_raises(self, code: ErrorCode, function: Any, *arguments: Any, **more: Any) -> None:
        error = self.assertRaises(KafkaError, function, *arguments, **more)
        self.assertEqual(code, error.code)


def later(function: Any, *arguments: Any) -> Deferred[Any]:
    """
    The result or exception of a function as a Deferred.
    """
    try:
        answer = function(*arguments)
    except KafkaError as error:
        failed: Deferred[Any] = Deferred()
        failed.errback(Failure(error))
        return failed
    return answer if isinstance(answer, Deferred) else succeed(answer)
