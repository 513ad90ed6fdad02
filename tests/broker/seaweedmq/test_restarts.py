"""
A gateway ends, and another one finds its topics and records in the cluster.
"""

from typing import Any

import pytest
from twisted.internet.defer import CancelledError
from twisted.logger import capturedLogs, formatEvent

from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweed.filer.filer import Filer, is_inline
from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.broker.seaweedmq.formats.format import Message
from kgateway.broker.seaweedmq.partitions.partition import SeaweedMQPartition
from kgateway.broker.seaweedmq.partitions.publisher import PartitionPublisher
from kgateway.broker.seaweedmq.topics.broker_rpc import BrokerRpc
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_resource import group
from kgateway.cluster.partition import EpochEnd, Origin
from kgateway.cluster.view import NewTopic
from kgateway.records.record import records
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.broker.behaviour import (
    appended,
    batch,
    fetched,
    noted,
    offsets,
    refusal,
    result,
    sequenced,
    stored,
)
from tests.broker.seaweed.cluster import done
from tests.broker.seaweed.real_reactor import pause, wait
from tests.broker.seaweedmq.foreign_topic import ForeignTopic
from tests.broker.seaweedmq.gateways import Start, group_log, leader, running

WAITS_S = 1.5  # longer than a gateway that waits takes to ask again
_FLUSHED_S = 1.1  # longer than a broker of the tests waits with its files

FORMS = pytest.mark.parametrize("form", ["batch", "record", "plain"])


def config(form: str) -> TopicConfig:
    """
    The configs of a topic of this form.
    """
    texts = {"seaweedmq.format": form}
    if form == "plain":
        texts["message.timestamp.type"] = "LogAppendTime"
    return TopicConfig.of(texts)


@FORMS
def test_records_are_there_again(form: str, start: Start) -> None:
    """
    Topics, their configs and ids, and all records are there at their offsets; new records follow them.
    """
    with running(start) as broker:
        before = result(broker.create_topic(NewTopic("t", 2, config(form))))
        for count in (2, 3, 1):
            appended(broker.partition(before.id, 1), batch(count))
    with running(start) as broker:
        after = broker.view().topics["t"]
        assert (after.id, len(after.partitions), after.config) == (before.id, 2, before.config)
        assert broker.view().cluster_id
        partition = broker.partition(after.id, 1)
        assert (partition.log_start, partition.log_end, partition.high_watermark) == (0, 6, 6)
        read = stored(fetched(partition, 0))
        found = [(each.header.base_offset + at, r.key, r.value) for each in read for at, r in enumerate(records(each))]
        assert found == [(offset, b"key", b"value") for offset in range(6)]
        assert appended(partition, batch()).base_offset == 6
        assert broker.partition(after.id, 0).log_end == 0
    with running(start) as broker:
        assert broker.partition(before.id, 1).log_end == 7


def test_what_others_publish_among_batches_is_passed_over(start: Start, cluster: DevCluster, namespace: str) -> None:
    """
    It is before batches, between them, and last: each batch is read, and no offset is given twice.
    """
    theirs = [Message(b"key", b"theirs"), Message(b"", b"")]
    with running(start) as broker:
        topic = result(broker.create_topic(NewTopic("t", 1, config("batch"))))
        others = ForeignTopic(cluster, name="t", namespace=namespace)
        others.publish(theirs)
        assert appended(broker.partition(topic.id, 0), sequenced(0, 3)).base_offset == 0
        others.publish(theirs)
        assert appended(broker.partition(topic.id, 0), sequenced(3, 3)).base_offset == 3
    for number in range(2):
        others.publish(theirs)
        with running(start) as broker:
            partition = broker.partition(topic.id, 0)
            assert (partition.log_start, partition.log_end, partition.high_watermark) == (0, 6 + number, 6 + number)
            assert [offset for offset in range(6 + number) if not offsets(fetched(partition, offset))] == []
            assert appended(partition, sequenced(3, 3)).base_offset == 3
            assert appended(partition, batch()).base_offset == 6 + number
            assert offsets(fetched(partition, 0))[:2] == [0, 3]


def test_a_damaged_file_costs_what_is_in_it(start: Start, filer: Filer) -> None:
    """
    All other files of the partition can be read, wherever the damaged one is; new records follow all of them.
    """
    with running(start) as broker:
        topic = result(broker.create_topic(NewTopic("t", 1, config("batch"))))
        partition = broker.partition(topic.id, 0)
        assert isinstance(partition, SeaweedMQPartition)
        for _ in range(4):
            appended(partition, batch(3))
            pause(_FLUSHED_S)
        done(partition._context.files.refresh())
        file = partition._context.files.listed[1]
        data = bytearray(wait(filer.files.read(file.path, 0, file.size)))
        data[len(data) // 2] ^= 0x5A
        wait(filer.files.put(file.path, bytes(data)))
    with running(start) as broker:
        partition = broker.partition(topic.id, 0)
        assert [offsets(fetched(partition, offset)) for offset in (0, 6, 9)] == [[0], [6], [9]]
        assert refusal(lambda: fetched(partition, 3)).code is ErrorCode.CORRUPT_MESSAGE
        assert appended(partition, batch()).base_offset == 12


@FORMS
def test_reads_begin_anywhere(form: str, start: Start) -> None:
    """
    A read from files, too, begins with the batch that has the offset.
    """
    with running(start) as broker:
        topic = result(broker.create_topic(NewTopic("t", 1, config(form))))
        for count in (2, 3, 1):
            appended(broker.partition(topic.id, 0), batch(count))
    with running(start) as broker:
        partition = broker.partition(topic.id, 0)
        for offset in range(6):
            found = stored(fetched(partition, offset, max_bytes=0, at_least_one=True))
            assert len(found) == 1
            assert found[0].header.base_offset <= offset <= found[0].header.last_offset
        assert offsets(fetched(partition, 6)) == []
        assert refusal(lambda: fetched(partition, 7)).code is ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize(
    ("client_id", "name"), [("billing", "kgateway/billing"), (None, "kgateway"), ("x" * 101, f"kgateway/{'x' * 100}")]
)
def test_streams_have_the_name_of_the_client(
    client_id: str | None, name: str, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    It is the client for which they were opened.
    """
    names, real = list[str](), BrokerRpc.publish

    async def publish(self: BrokerRpc, topic: str, assignment: Any, publisher: Any, name: str) -> None:
        names.append(name)
        await real(self, topic, assignment, publisher, name)

    monkeypatch.setattr(BrokerRpc, "publish", publish)
    with running(start) as broker:
        topic = result(broker.create_topic(NewTopic("t", 1, config("batch"))))
        result(broker.partition(topic.id, 0).append(batch(), Origin.CLIENT, client_id).committed)
    assert names[0] == name


def test_each_start_is_an_epoch(start: Start) -> None:
    """
    Epochs grow, and their ends are stored.
    """
    epochs = []
    for _ in range(3):
        with running(start) as broker:
            topics = broker.view().topics
            topic = topics.get("t") or result(broker.create_topic(NewTopic("t", 1, config("batch"))))
            partition = broker.partition(topic.id, 0)
            epochs.append(partition.leader_epoch)
            appended(partition, batch(2))
            assert partition.epoch_end(epochs[0]) == EpochEnd(epochs[0], 2)
            assert partition.epoch_end(epochs[-1]) == EpochEnd(epochs[-1], 2 * len(epochs))
    assert epochs == sorted(set(epochs))


@pytest.mark.parametrize("form", ["batch", "record"])
def test_producers_are_remembered(form: str, start: Start) -> None:
    """
    A batch that a producer repeats after a restart is stored once, and its sequence continues.
    """
    with running(start) as broker:
        topic = result(broker.create_topic(NewTopic("t", 1, config(form))))
        for sequence in (0, 2):
            appended(broker.partition(topic.id, 0), sequenced(sequence, 2))
    with running(start) as broker:
        partition = broker.partition(topic.id, 0)
        assert [appended(partition, sequenced(sequence, 2)).base_offset for sequence in (0, 2, 4)] == [0, 2, 4]
        assert partition.log_end == 6


def test_a_topic_that_is_deleted_is_not_opened(start: Start) -> None:
    """
    Its partitions may wait for their turn, as all do at a start; they are skipped silently.
    """
    with running(start) as broker, capturedLogs() as logged:
        topic = result(broker.create_topic(NewTopic("t", 2, config("batch"))))
        result(broker.delete_topic(topic.id))
        result(leader(broker).topics.open_all([topic]))
    assert not [event for event in logged if "could not be opened" in formatEvent(event)]


@pytest.mark.parametrize("error", [None, RpcError(Status.UNAVAILABLE, "it is out")])
def test_a_stop_says_what_may_be_lost(error: RpcError | None, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    It logs the partition, the number of records, and the reason, but nothing about records in files.
    """

    pause = SeaweedMQPartition.pause

    async def failing(partition: SeaweedMQPartition) -> int:
        if error and partition.index == 1:
            raise error
        return await pause(partition)

    monkeypatch.setattr(SeaweedMQPartition, "pause", failing)
    with capturedLogs() as logged, running(start) as broker:
        topic = result(broker.create_topic(NewTopic("t", 2, config("batch"))))
        appended(broker.partition(topic.id, 0), batch(2))
        monkeypatch.setattr(PartitionPublisher, "publish", lambda *_: None)
        lost = broker.partition(topic.id, 1).append(batch(3), Origin.CLIENT)
    for each in (lost.stored, lost.committed):
        assert each
        each.addErrback(lambda failure: failure.trap(KafkaError))
    told = [formatEvent(event) for event in logged if "may not be in files" in formatEvent(event)]
    assert told == [f"t-1: 3 records at its end may not be in files: {error or 'no broker has accepted them'}"]


def test_groups_and_configs_are_there_again(start: Start) -> None:
    """
    The state of coordinators is read from a snapshot and the records after it; configs are read, too.
    """
    with running(start) as broker:
        log = group_log(broker)
        noted(log, [(b"a", b"1"), (b"b", b"2")])
        result(log.snapshot(iter([(b"a", b"1"), (b"b", b"2")])))
        noted(log, [(b"c", b"3")])
        result(broker.change_config(group("g"), lambda _: {"consumer.session.timeout.ms": "50000"}))
    for value in (b"4", b"5"):
        with running(start) as broker:
            log = group_log(broker)
            found = dict(pair for piece in result(log.replay()) for pair in piece)
            assert found == {b"a": b"1", b"b": b"2", b"c": b"3"} | ({b"d": b"4"} if value == b"5" else {})
            assert broker.view().overrides_of(group("g")) == {"consumer.session.timeout.ms": "50000"}
            noted(log, [(b"d", value)])


def test_producer_ids_are_given_once(start: Start) -> None:
    given_out = []
    for _ in range(2):
        with running(start) as broker:
            given_out += [result(broker.new_producer_id()) for _ in range(3)]
    assert len(set(given_out)) == 6


@FORMS
def test_topics_that_have_grown_are_read_from_their_beginning(form: str, start: Start) -> None:
    """
    Records from before a topic got more partitions keep their offsets, also after a restart.
    """
    with running(start) as broker:
        topic = result(broker.create_topic(NewTopic("t", 1, config(form))))
        appended(broker.partition(topic.id, 0), batch(3))
        result(broker.add_partitions(topic.id, 3))
        assert appended(broker.partition(topic.id, 0), batch(2)).base_offset == 3
        assert appended(broker.partition(topic.id, 2), batch()).base_offset == 0
    with running(start) as broker:
        assert len(broker.view().topics["t"].partitions) == 3
        partition = broker.partition(topic.id, 0)
        read = stored(fetched(partition, 0)) + stored(fetched(partition, 3))
        found = {each.header.base_offset + at for each in read for at in range(each.header.records_count)}
        assert (found, partition.log_end) == ({0, 1, 2, 3, 4}, 5)
        assert broker.partition(topic.id, 2).log_end == 1


def test_the_second_gateway_waits(start: Start) -> None:
    """
    While one gateway leads, another one does not serve the topics; afterwards it does, in a later epoch.
    """
    with running(start) as first:
        topic = result(first.create_topic(NewTopic("t", 1, config("batch"))))
        appended(first.partition(topic.id, 0), batch())
        second = start()
        begun = second.start()
        for _ in range(20):
            appended(first.partition(topic.id, 0), batch())
        assert not begun.called
        epoch = first.partition(topic.id, 0).leader_epoch
    result(begun)
    partition = second.partition(topic.id, 0)
    assert partition.leader_epoch > epoch
    assert partition.log_end == 21
    result(second.stop())


def test_who_waits_can_be_stopped(start: Start) -> None:
    """
    A gateway that is stopped while another one leads does not take the lease, not even when that one is gone.
    """
    with running(start) as first:
        second = start()
        begun = second.start()
        pause(WAITS_S)
        assert not begun.called
        result(second.stop())
        with pytest.raises(CancelledError):
            result(begun)
        epoch = result(first.create_topic(NewTopic("t", 1, config("batch")))).partitions[0].leader_epoch
    pause(WAITS_S)
    with running(start) as third:
        assert third.view().topics["t"].partitions[0].leader_epoch == epoch + 1


def test_small_files_are_read_wherever_their_bytes_are(start: Start, filer: Filer, namespace: str) -> None:
    """
    Files restored over HTTP have their bytes in volumes, even small ones. A gateway that begins to lead moves those of
    a topic's two files into their entries, because brokers of SeaweedMQ find them only there.
    """
    at = f"/topics/{namespace}"
    inside = [f"{at}/t/topic.conf", f"{at}/t/kgateway.json"]
    side_files = [f"{at}/t/.kgateway/0/{name}" for name in ("leader-epoch-checkpoint", "log-start-offset")]
    with running(start) as broker:
        before = result(broker.create_topic(NewTopic("t", 1, config("batch"))))
        epoch = broker.partition(before.id, 0).leader_epoch
        appended(broker.partition(before.id, 0), batch(3))
    with running(start) as broker:
        partition = broker.partition(before.id, 0)
        appended(partition, batch(2))
        assert result(partition.delete_before(2)) == 2
        result(broker.change_config(group("g"), lambda _: {"consumer.session.timeout.ms": "50000"}))
        noted(group_log(broker), [(b"key", b"value")])
    states = f"{at}/.meta/kgateway/state/__consumer_offsets/kgateway.json"
    for path in (*inside, *side_files, f"{at}/.meta/kgateway/configs", states):
        content = wait(filer.content(path))
        assert content, path
        wait(filer.files.put(path, content))
    with running(start) as broker:
        assert broker.view().topics["t"].id == before.id
        partition = broker.partition(before.id, 0)
        assert (partition.log_start, partition.log_end) == (2, 5)
        assert partition.epoch_end(epoch) == EpochEnd(epoch, 3)
        assert broker.view().overrides == {group("g"): {"consumer.session.timeout.ms": "50000"}}
        replayed = result(group_log(broker).replay())
        assert [pair for piece in replayed for pair in piece] == [(b"key", b"value")]
        assert appended(partition, batch()).base_offset == 5
    entries = [wait(filer.entry(path)) for path in inside]
    assert [entry is not None and is_inline(entry) for entry in entries] == [True, True]
