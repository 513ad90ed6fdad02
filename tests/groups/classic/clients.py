"""
A classic group that writes into a list, and what its members say to it.
"""

from collections.abc import Sequence
from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from kgateway.config.settings import Settings
from kgateway.groups.classic.exchange import Join, Joined, Leave, Sync, Synced
from kgateway.groups.classic.group import ClassicGroup
from kgateway.groups.classic.protocols import Protocols
from kgateway.groups.rows import Row
from kgateway.messages.consumer_protocol import ConsumerProtocolSubscription
from kgateway.wire.codec import encode
from kgateway.wire.errors import ErrorCode, KafkaError

START_MS = 1_800_000_000_000
SESSION_MS = 45_000
REBALANCE_MS = 60_000
DELAY_S = 3


def subscription(*topics: str, user_data: bytes | None = None, version: int = 1) -> bytes:
    """
    What a consumer says to its leader.
    """
    said = ConsumerProtocolSubscription(topics=list(topics), user_data=user_data)
    return version.to_bytes(2, "big") + encode(said, version)


class Rows:
    """
    The `Write` of a group: keeps what is written, at once, when it is told so, or never.
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
        What waits is written now, or is not.
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
        The group as a new process knows it, by what was written.
        """
        group = self.made()
        for row in self.rows.written:
            group.replay(row)
        group.loaded()
        return group

    def asking(self, member_id: str = "", **more: Any) -> Join:
        """
        What an old client says on joining; it is let in without being told its id first.
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
        return Join(member_id=member_id, **values)

    def join(self, member_id: str = "", **more: Any) -> Deferred[Joined]:
        """
        The answer, now or later, or why there is none.
        """
        return later(self.group.join, self.asking(member_id, **more))

    def sync(self, joined: Joined, assignments: dict[str, bytes] | None = None, **more: Any) -> Deferred[Synced]:
        """
        What a member says that was told of its generation.
        """
        values = {"member_id": joined.member_id, "generation": joined.generation, **more}
        return later(self.group.sync, Sync(assignments=tuple((assignments or {}).items()), **values))

    def leave(self, *leavers: str | Leave) -> list[ErrorCode]:
        return self.group.leave([each if isinstance(each, Leave) else Leave(each) for each in leavers])

    def beat(self, joined: Joined, instance_id: str | None = None) -> None:
        self.group.heartbeat(joined.member_id, instance_id, joined.generation)

    def members(self, count: int, **more: Any) -> list[Joined]:
        """
        So many members, joined and not synced; the first one leads.
        """
        waiting = [self.join(**more) for _ in range(count)]
        self.clock.advance(DELAY_S) if count == 1 else self.wait_for_newcomers()
        return [self.successResultOf(each) for each in waiting]

    def wait_for_newcomers(self) -> None:
        """
        The first generation begins when members have come in one delay and none in the next.
        """
        self.clock.advance(DELAY_S)
        self.clock.advance(DELAY_S)

    def stable(self, count: int, **more: Any) -> list[Joined]:
        """
        So many members of a stable group, each with its id for an assignment.
        """
        joined = self.members(count, **more)
        self.share_out(joined)
        return joined

    def share_out(self, joined: Sequence[Joined]) -> None:
        """
        All members sync, the leader last.
        """
        everything = {each.member_id: each.member_id.encode() for each in joined}
        for each in sorted(joined, key=lambda each: each.member_id == each.leader):
            self.sync(each, everything if each.member_id == each.leader else None)

    def advance(self, seconds: float, alive: Sequence[Joined] = ()) -> None:
        """
        Time passes in which these send heartbeats, whatever they are told.
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
        The answer is there, and is this error.
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
    What a function answers, raises or promises, as a promise.
    """
    try:
        answer = function(*arguments)
    except KafkaError as error:
        failed: Deferred[Any] = Deferred()
        failed.errback(Failure(error))
        return failed
    return answer if isinstance(answer, Deferred) else succeed(answer)
