"""
Writing the markers of a transaction to every partition.
"""

from typing import cast

import pytest
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.logger import capturedLogs

from kgateway.config.settings import Settings
from kgateway.context import GatewayParts
from kgateway.interfaces import IBroker
from kgateway.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from kgateway.records.control import Marker, read_marker
from kgateway.security.authorizer import AllowAll
from kgateway.topic_partition import TopicPartition
from kgateway.transactions import markers as sending
from kgateway.transactions.markers import FIRST_PAUSE_S, LONGEST_PAUSE_S, MarkerEntry, MarkerSender, MarkerWriter
from kgateway.transactions.state import ProducerIdAndEpoch
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.broker.behaviour import START_MS, refusal, result
from tests.transactions.simulated_broker import HERE, THERE, SimulatedBroker
from tests.transactions.transaction_world import T0, T1, T2

COMMITS = MarkerEntry(ProducerIdAndEpoch(7, 4), True, 9, 2)
_Answer = WriteTxnMarkersResponse.Marker


class World:
    """
    A MarkerSender and its broker.
    """

    def __init__(self, *leaders: int) -> None:
        self.clock = Clock()
        self.broker = SimulatedBroker(leaders or (HERE, HERE, HERE))
        parts = GatewayParts(cast(IBroker, self.broker), Settings(), AllowAll(), self.clock, lambda: START_MS)
        self.told: list[tuple[TopicPartition, int, bool]] = []
        self.markers = parts.service(MarkerWriter)
        self.forget = self.markers.listen(lambda *told: self.told.append(told))
        self.done: set[TopicPartition] = set()
        self.sender = MarkerSender(parts)

    def send(self, *partitions: TopicPartition, ending: MarkerEntry = COMMITS) -> Deferred[None]:
        return Deferred.fromCoroutine(self.sender.send(partitions, ending, self.done.update))

    def written(self) -> list[int]:
        """
        The number of markers in each partition.
        """
        return [len(partition.entries) for partition in self.broker.partitions]

    def answer(self, codes: dict[int, ErrorCode]) -> None:
        """
        Answer for the other node, with these codes for partitions of `t`.
        """
        told = [_Answer.Topic.Partition(partition_index=index, error_code=code) for index, code in codes.items()]
        marker = _Answer(producer_id=7, topics=[_Answer.Topic(name="t", partitions=told)])
        self.broker.peers.answers.popleft().callback(WriteTxnMarkersResponse(markers=[marker]))


@pytest.mark.parametrize("commits", [True, False])
def test_fields_of_a_marker(commits: bool) -> None:
    """
    It has the producer, the outcome, and the epoch of the coordinator.
    """
    world = World()
    result(world.send(T1, ending=COMMITS._replace(commits=commits)))
    (batch,) = world.broker.partitions[1].entries
    header = batch.header
    assert (header.producer_id, header.producer_epoch, header.is_control, header.is_transactional) == (7, 4, True, True)
    assert read_marker(batch) == Marker(commits, 9)
    assert header.max_timestamp == START_MS
    assert (world.told, world.done) == ([(T1, 7, commits)], {T1})


def test_listeners_are_called_for_committed_markers() -> None:
    """
    They are called once the marker is committed; one that fails does not stop the others.
    """
    world = World()
    world.broker.partitions[0].is_slow = True

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    forget = world.markers.listen(fail)
    sent = world.send(T0)
    assert (world.told, world.done, sent.called) == ([], set(), False)
    with capturedLogs() as logged:
        world.broker.partitions[0].settle()
    assert (world.told, world.done, sent.called) == ([(T0, 7, True)], {T0}, True)
    assert len(logged) == 1
    forget()
    world.forget()
    result(world.send(T1))
    assert len(world.told) == 1


def test_the_sender_waits_for_all_markers() -> None:
    """
    A partition may be slow; each gets one marker.
    """
    world = World()
    for partition in world.broker.partitions[:2]:
        partition.is_slow = True
    sent = world.send(T0, T1, T2)
    assert world.written() == [1, 1, 1]
    world.broker.partitions[1].settle()
    assert not sent.called
    world.broker.partitions[0].settle()
    assert sent.called
    world.clock.advance(60)
    assert world.written() == [1, 1, 1]


@pytest.mark.parametrize("late", [True, False])
@pytest.mark.parametrize(
    "code", [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
)
def test_unavailable_partitions_are_retried(code: ErrorCode, late: bool) -> None:
    """
    A partition that refuses, or fails later, is retried after growing pauses; others get no second marker.
    """
    world = World()
    log = world.broker.partitions[0]
    log.is_slow = late
    log.error = None if late else KafkaError(code, "not now")

    def fail() -> None:
        if late:
            log.settle(KafkaError(code, "not now"))

    with capturedLogs() as logged:
        sent = world.send(T0, T1)
        fail()
    assert world.done == {T1}
    (event,) = logged
    assert (event["partitions"], event["topic"], event["index"], event["error"]) == ("1 partition", "t", 0, code.name)
    assert event["log_level"].name == "info"
    for pause_s in (FIRST_PAUSE_S, 2 * FIRST_PAUSE_S, 4 * FIRST_PAUSE_S):
        world.clock.advance(pause_s)
        fail()
        (timer,) = world.clock.getDelayedCalls()
        assert timer.getTime() - world.clock.seconds() == pytest.approx(2 * pause_s)
    log.error, log.is_slow = None, False
    world.clock.advance(60)
    assert sent.called
    assert world.done == {T0, T1}
    assert world.written()[1] == 1


def test_pauses_are_bounded() -> None:
    """
    A partition is retried every few seconds, however long it takes.
    """
    pauses = sending.pauses()
    assert max(next(pauses) for _ in range(20)) == LONGEST_PAUSE_S


def test_unexpected_errors_are_logged_and_retried() -> None:
    """
    Consumers wait for the marker, so even an error that is not retriable is retried.
    """
    world = World()
    world.broker.partitions[1].error = KafkaError(ErrorCode.POLICY_VIOLATION, "never")
    world.broker.partitions[2].error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "not now")
    with capturedLogs() as logged:
        world.send(T0, T1, T2)
    (event,) = logged
    assert (event["log_level"].name, event["partitions"], event["error"]) == (
        "error",
        "2 partitions",
        "POLICY_VIOLATION",
    )
    assert len(world.clock.getDelayedCalls()) == 1


@pytest.mark.parametrize("code", [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED])
def test_a_replaced_coordinator_stops(code: ErrorCode) -> None:
    world = World()
    world.broker.partitions[0].error = KafkaError(code, "there is a later one")
    assert refusal(lambda: world.send(T0)).code is code
    assert world.clock.getDelayedCalls() == []


def test_deleted_partitions_need_no_marker() -> None:
    """
    They may be deleted with their topic.
    """
    world = World()
    gone = {TopicPartition("gone", 0), TopicPartition("t", 3)}
    result(world.send(*gone))
    assert (world.done, world.told) == (gone, [])


def test_a_marker_for_an_unknown_topic_is_refused() -> None:
    error = refusal(lambda: World().markers.write(TopicPartition("gone", 0), COMMITS))
    assert error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_deletion_ends_the_retries() -> None:
    world = World()
    world.broker.partitions[2].error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "not now")
    sent = world.send(T2)
    world.broker.lead([HERE, HERE])
    world.clock.advance(1)
    assert sent.called


def test_markers_are_written_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The first slice is in this turn of the reactor.
    """
    monkeypatch.setattr(sending, "PIECE", 2)
    world = World()
    sent = world.send(T0, T1, T2)
    assert (world.written(), sent.called) == ([1, 1, 0], False)
    world.clock.advance(0)
    assert (world.written(), sent.called) == ([1, 1, 1], True)


def test_partitions_of_another_node() -> None:
    """
    It is asked by Kafka's request, once for all that it leads, while local partitions are written.
    """
    world = World(THERE, HERE, THERE)
    sent = world.send(T0, T1, T2, TopicPartition("t", 9))
    assert (world.written(), sent.called) == ([0, 1, 0], False)
    ((node, request, version),) = world.broker.peers.asked
    assert (node.id, version) == (THERE, 2)
    assert isinstance(request, WriteTxnMarkersRequest)
    (marker,) = request.markers
    assert [(topic.name, topic.partition_indexes) for topic in marker.topics] == [("t", [0, 2])]
    told = (marker.producer_id, marker.producer_epoch, marker.transaction_result, marker.coordinator_epoch)
    assert (*told, marker.transaction_version) == (7, 4, True, 9, 2)
    world.answer({0: ErrorCode.NONE, 2: ErrorCode.NOT_LEADER_OR_FOLLOWER})
    assert (world.done, sent.called) == ({T0, T1, TopicPartition("t", 9)}, False)
    world.clock.advance(FIRST_PAUSE_S)
    _, request, _ = world.broker.peers.asked[1]
    assert isinstance(request, WriteTxnMarkersRequest)
    assert [topic.partition_indexes for topic in request.markers[0].topics] == [[2]]
    world.answer({2: ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT})
    assert sent.called


@pytest.mark.parametrize("said", [{}, {1: ErrorCode.NONE}])
def test_partitions_missing_in_the_answer_are_retried(said: dict[int, ErrorCode]) -> None:
    world = World(THERE, HERE)
    sent = world.send(T0)
    world.answer(said)
    assert not sent.called
    world.clock.advance(FIRST_PAUSE_S)
    world.answer({0: ErrorCode.NONE})
    assert sent.called


def test_an_absent_node_is_retried() -> None:
    """
    A node that does not answer, or is unknown, is retried; the partition may have another leader by then.
    """
    world = World(THERE, 5)
    sent = world.send(T0, T1)
    world.broker.peers.answers.popleft().errback(KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "away"))
    assert (world.done, sent.called) == (set(), False)
    world.broker.lead([HERE, HERE])
    world.clock.advance(FIRST_PAUSE_S)
    assert (sent.called, world.written()) == (True, [1, 1])


def test_cancellation_disturbs_no_write() -> None:
    """
    Nothing is left in progress.
    """
    world = World(HERE, THERE, HERE)
    log = world.broker.partitions[0]
    log.is_slow = True
    sent = world.send(T0, T1, T2)
    sent.cancel()
    with pytest.raises(CancelledError):
        result(sent)
    log.settle()
    assert world.clock.getDelayedCalls() == []


def test_cancellation_in_a_pause_leaves_no_timer() -> None:
    world = World()
    world.broker.partitions[0].error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "not now")
    sent = world.send(T0)
    sent.addErrback(lambda _: None)
    sent.cancel()
    assert world.clock.getDelayedCalls() == []


def test_a_repeated_marker_ends_no_later_transaction() -> None:
    """
    The next transaction may have the epoch of the marker.
    """
    world = World()
    world.broker.partitions[0].open = {(7, 4)}
    error = refusal(lambda: world.markers.write(T0, COMMITS))
    assert (error.code, world.written()) == (ErrorCode.INVALID_PRODUCER_EPOCH, [0, 0, 0])
    assert world.markers.write(T0, COMMITS._replace(transaction_version=0)) is None
    assert world.written() == [1, 0, 0]
