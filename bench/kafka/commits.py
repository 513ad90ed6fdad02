"""
How many commits of one partition a server takes: from consumers that do not wait, from a hundred that do, from one.

Each consumer is a member of a group of its own, with a connection of its own. Requests are made before the time is
taken, and answers looked into afterwards; then each group must have what was committed last.
"""

from collections.abc import Iterator, Sequence

from bench.kafka.classic_groups import ClassicMember, Group, until_coordinated
from bench.kafka.clients import create_topic
from bench.kafka.multiplexed import Connections, Conversation, answer_to, frame_of
from bench.kafka.rounds import Plan, Workload
from bench.kafka.servers import Server
from bench.kafka.table import Measured, Row, at_least
from bench.work import cost
from kgateway.messages.offset_commit import OffsetCommitRequest
from kgateway.messages.offset_fetch import OffsetFetchRequest
from kgateway.wire.errors import ErrorCode

TOPIC = "commits"
CPU_PER = 100_000  # commits

# Consumers, how many commits each has in flight, and how many all of them make.
_WORK = {
    "from 8 consumers, a hundred in flight each": (8, 100, 40_000),
    "from 100 consumers, one after the other": (100, 1, 20_000),
    "from one consumer, one after the other": (1, 1, 4_000),
}


class _Consumer:
    def __init__(self, number: int, connections: Connections, count: int) -> None:
        self.connection = connections.connect()
        self._member = ClassicMember(Group(f"commits-{number}", TOPIC, 1), self.connection)
        connections.hold([(self.connection, self._enter())])
        self._frames = [frame_of(self._commit(offset)) for offset in range(1, count + 1)]
        self._unsent: Iterator[bytes] = iter(self._frames)
        self._answers: list[bytes] = []

    def send(self, count: int) -> None:
        """
        Send this many more commits, if any are left.
        """
        self.connection.socket.sendall(b"".join([frame for _, frame in zip(range(count), self._unsent, strict=False)]))

    def go_on(self) -> int:
        """
        Commit once more for each answer that has arrived; returns their number.
        """
        answers = self.connection.received()
        self._answers += answers
        self.send(len(answers))
        return len(answers)

    def end(self) -> Conversation:
        """
        Check that every commit succeeded, and leave.
        """
        for frame in self._answers:
            [topic] = answer_to(OffsetCommitRequest, frame).topics
            assert not topic.partitions[0].error_code, ErrorCode(topic.partitions[0].error_code).name
        group = OffsetFetchRequest.Group(group_id=self._member.group.id, topics=None)
        [found] = (yield OffsetFetchRequest(groups=[group])).groups
        committed = found.topics[0].partitions[0].committed_offset
        assert committed == len(self._frames), f"{committed} is committed instead of {len(self._frames)}"
        yield from self._member.leave()

    def _enter(self) -> Conversation:
        yield from until_coordinated(self._member.group.id)
        yield from self._member.enter()

    def _commit(self, offset: int) -> OffsetCommitRequest:
        partition = OffsetCommitRequest.Topic.Partition(
            partition_index=0, committed_offset=offset, committed_metadata=""
        )
        return OffsetCommitRequest(
            group_id=self._member.group.id,
            generation_id_or_member_epoch=self._member.generation,
            member_id=self._member.id,
            topics=[OffsetCommitRequest.Topic(name=TOPIC, partitions=[partition])],
        )


def _commit_all(connections: Connections, consumers: Sequence[_Consumer], under_way: int, count: int) -> None:
    by_connection = {consumer.connection: consumer for consumer in consumers}
    for consumer in consumers:
        consumer.send(under_way)
    while count:
        count -= sum([by_connection[connection].go_on() for connection in connections.ready()])


def _measured(server: Server, number: int, under_way: int, count: int) -> Measured:
    with Connections(server.port) as connections:
        consumers = [_Consumer(index, connections, count // number) for index in range(number)]
        took = cost(server.pid, lambda: _commit_all(connections, consumers, under_way, count // number * number))
        connections.hold([(consumer.connection, consumer.end()) for consumer in consumers])
    return Measured(count / took.seconds, took.server_cpu * CPU_PER / count, took.client_cpu / took.seconds)


def _prepare(server: Server, plan: Plan) -> None:
    create_topic(server, TOPIC, partitions=1)


def _run(server: Server, plan: Plan) -> Sequence[Measured]:
    return [_measured(server, number, under_way, plan.part(count)) for number, under_way, count in _WORK.values()]


WORKLOAD = Workload(
    "commits of one partition",
    [Row(f"commits {who}", "commits/s", at_least(1.0), f"{CPU_PER:,} commits") for who in _WORK],
    _run,
    _prepare,
)
