"""
Clients of one classic group that behave as real ones do, and invariants that hold whatever happens to them.

A client does one thing a second: it joins, syncs, or sends a heartbeat, and handles responses as the Java consumer
does. The crowd checks the responses.
"""

from collections.abc import Sequence
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from kgateway.config.settings import Settings
from kgateway.groups.classic.group import ClassicGroup
from kgateway.groups.classic.requests import (
    JoinRequest,
    JoinResult,
    LeavingMember,
    MemberIdRequired,
    Protocols,
    SyncRequest,
    SyncResult,
)
from kgateway.groups.records import Row
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.groups.classic.clients import START_MS, Rows, later, subscription

PARTITIONS = range(6)
SESSION_S, REBALANCE_S, BEAT_S = 10, 20, 3
_COORDINATOR_MOVED = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)


class Disk(Rows):
    """
    Rows that may be lost while their write is in progress.
    """

    def __init__(self) -> None:
        super().__init__()
        self.durable: list[Row] = []
        self.has_lost = False

    def settle(self, error: Exception | None = None) -> None:
        self.has_lost |= error is not None and bool(self.waiting)
        super().settle(error)

    def write(self, rows: Sequence[Row]) -> Deferred[None] | None:
        self.has_lost |= self.refuses is not None
        committed = super().write(rows)
        if committed is None:
            self.durable += rows
        else:
            committed.addCallback(lambda _: self.durable.extend(rows))
        return committed


class Client:
    """
    A client process, which may hang or be dead.
    """

    def __init__(self, crowd: "Crowd", number: int, *, is_old: bool, instance_id: str | None) -> None:
        self.crowd = crowd
        self.number = number
        self.is_old = is_old
        self.instance_id = instance_id
        self.member_id = ""
        self.generation = -1
        self.topic = "orders"
        self.owned: bytes | None = None  # the partitions; `None` without a valid assignment
        self.wants: str | None = "join"
        self.waiting: Deferred[Any] | None = None
        self.assignments: list[tuple[str, bytes]] = []
        self.is_hung = self.is_gone = False
        self.may_be_forgotten = False
        self.beat_at = 0.0

    def act(self) -> None:
        if self.is_gone or self.is_hung or self.waiting:
            return
        match self.wants:
            case "join":
                self.ask(self.crowd.group.join, self.join(), self.joined)
            case "sync":
                self.ask(self.crowd.group.sync, self.sync(), self.synced)
        if self.generation >= 0 and self.crowd.clock.seconds() - self.beat_at >= BEAT_S:
            self.beat()

    def ask(self, function: Any, asked: Any, answered: Any) -> None:
        """
        Send a request, and handle the response when it arrives.
        """
        self.wants = None
        waiting = self.waiting = later(function, asked)
        self.crowd.entry.append(waiting)

        def taken(answer: Any) -> None:
            if self.waiting is waiting:  # else the request was abandoned
                self.waiting = None
                self.beat_at = self.crowd.clock.seconds()
                if not self.is_gone:
                    self.refused(answer) if isinstance(answer, Failure) else answered(answer)

        waiting.addBoth(taken).addErrback(self.crowd.broken.append)

    def join(self) -> JoinRequest:
        metadata = subscription(self.topic)
        preferred = ("a", "b") if self.number % 2 else ("b", "a")
        return JoinRequest(
            member_id=self.member_id,
            instance_id=self.instance_id,
            client_id=f"c{self.number}",
            client_host="/127.0.0.1",
            session_timeout_ms=SESSION_S * 1000,
            rebalance_timeout_ms=REBALANCE_S * 1000,
            protocol_type="consumer",
            protocols=Protocols((name, metadata) for name in preferred),
            takes_member_id=not self.is_old,
            can_skip_assignment=not self.is_old,
        )

    def joined(self, joined: JoinResult) -> None:
        self.member_id, self.generation = joined.member_id, joined.generation
        self.wants = "sync"
        self.assignments = []
        if joined.leader == joined.member_id and not joined.skip_assignment:
            ids = [listed.member_id for listed in joined.members]
            assert self.member_id in ids
            self.assignments = [(each, bytes(PARTITIONS[i :: len(ids)])) for i, each in enumerate(ids)]

    def sync(self) -> SyncRequest:
        return SyncRequest(
            member_id=self.member_id,
            instance_id=self.instance_id,
            generation=self.generation,
            protocol_type="consumer",
            assignments=self.assignments,
        )

    def synced(self, synced: SyncResult) -> None:
        self.owned = synced.assignment
        self.may_be_forgotten = self.is_hung
        self.crowd.note_owned(self)

    def beat(self) -> None:
        self.beat_at = self.crowd.clock.seconds()
        try:
            self.crowd.group.heartbeat(self.member_id, self.instance_id, self.generation)
        except KafkaError as error:
            self.failed(error)

    def refused(self, failure: Failure) -> None:
        failure.trap(KafkaError)
        assert isinstance(failure.value, KafkaError)
        self.failed(failure.value)

    def failed(self, error: KafkaError) -> None:
        if isinstance(error, MemberIdRequired):
            self.member_id = error.member_id
        elif error.code is ErrorCode.UNKNOWN_MEMBER_ID:
            assert self.may_be_forgotten, f"{self.member_id} was alive and is forgotten: {error}"
            self.member_id, self.may_be_forgotten = "", self.is_hung
        elif error.code is ErrorCode.FENCED_INSTANCE_ID:
            has_reason = self.crowd.is_doubled(self) or self.crowd.disk.has_lost
            assert has_reason, f"{self.member_id} is fenced, and nobody has its place"
            self.is_gone = True
        else:
            expected = (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION, *_COORDINATOR_MOVED)
            assert error.code in expected, error
            if error.code in _COORDINATOR_MOVED and self.owned is not None:
                return  # it looks the coordinator up again and continues
        self.wants, self.owned, self.generation = "join", None, -1

    def change(self, topic: str) -> None:
        """
        Subscribe to another topic, and join again.
        """
        if not self.waiting:
            self.topic, self.wants, self.owned = topic, "join", None

    def cut(self) -> None:
        """
        Break the connection; a request without a response is sent again.
        """
        if self.waiting:
            waiting, self.waiting = self.waiting, None
            waiting.cancel()
            self.wants, self.owned = "join", None


class Crowd:
    """
    The clients, their group, its disk and its clock.
    """

    def __init__(self) -> None:
        self.clock = Clock()
        self.disk = Disk()
        self.clients: list[Client] = []
        self.entry: list[Deferred[Any]] = []
        self.broken: list[Failure] = []  # violated invariants
        self.owners: dict[int, dict[int, str]] = {}  # by generation and partition
        self.newest = 0
        self.group = self.made()

    def made(self) -> ClassicGroup:
        return ClassicGroup(
            "g",
            settings=Settings(),
            clock=self.clock,
            now_ms=lambda: START_MS + round(self.clock.seconds() * 1000),
            write=self.disk.write,
        )

    def start(self, *, is_old: bool = False, instance_id: str | None = None) -> None:
        self.clients.append(Client(self, len(self.clients), is_old=is_old, instance_id=instance_id))

    def tick(self, seconds: int = 1) -> None:
        """
        Let time pass, second by second.
        """
        for _ in range(seconds):
            before = self.group.generation
            self.clock.advance(1)
            for client in self.clients:
                client.act()
            assert self.group.generation >= before
            if self.broken:
                self.broken[0].raiseException()

    def restart(self, *, keep: bool) -> None:
        """
        Kill and restart the gateway. Writes in progress are stored or lost.
        """
        if keep:
            self.disk.settle()
        self.group.stop()
        self.disk.settle(KafkaError(ErrorCode.NOT_COORDINATOR))
        self.group = self.made()
        for row in self.disk.durable:
            self.group.replay(row)
        self.group.loaded()
        for client in self.clients:
            client.may_be_forgotten |= client.member_id not in self.group.members

    def commit(self, client: Client, generation: int) -> None:
        """
        Check that only members of the newest generation that any client knows may commit.
        """
        try:
            self.group.check_commit(client.member_id, client.instance_id, generation, transactional=False)
        except KafkaError:
            return
        assert generation >= self.newest or self.group.is_empty
        assert client.member_id in self.group.members or self.group.is_empty

    def note_owned(self, client: Client) -> None:
        """
        Check that the client's partitions have no other owner in this generation, and that no generation begins
        twice.
        """
        assert client.generation >= self.newest
        self.newest = client.generation
        owners = self.owners.setdefault(client.generation, {})
        name = client.instance_id or client.member_id
        for partition in client.owned or b"":
            assert owners.setdefault(partition, name) == name, f"{partition} is {owners[partition]}'s and {name}'s"

    def is_doubled(self, client: Client) -> bool:
        return sum(1 for each in self.clients if each.instance_id == client.instance_id) > 1

    def settle(self) -> None:
        """
        Check that without further changes all live clients are one generation, own all partitions, and no request
        waits.
        """
        self.disk.refuses, self.disk.waits = None, False
        self.disk.settle()
        for client in self.clients:
            client.is_hung = False
        self.tick(3 * (SESSION_S + REBALANCE_S))
        live = [client for client in self.clients if not client.is_gone]
        assert all(waiting.called for waiting in self.entry)
        assert {member.id for member in self.group.members} == {client.member_id for client in live}
        assert {client.generation for client in live} <= {self.group.generation}
        assert self.group.state == ("Stable" if live else "Empty")
        if live:
            assert sorted(b"".join(client.owned or b"" for client in live)) == list(PARTITIONS)
        self.group.stop()
        assert not self.clock.getDelayedCalls()

    def remove(self, client: Client) -> None:
        """
        Have the client leave, or an administrator remove it by its instance id.
        """
        for each in self.clients:
            each.may_be_forgotten |= each is client or each.instance_id == client.instance_id is not None
        self.group.leave([LeavingMember("" if client.instance_id else client.member_id, client.instance_id)])
