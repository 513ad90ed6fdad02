"""
The meaning of options, and the errors of wrong ones.
"""

from collections.abc import Collection

import pytest

from kgateway.client.offsets import Extent, OffsetAndTimestamp
from kgateway.records.compression import Codec
from kgateway.spark.errors import Unreadable, WrongOption
from kgateway.spark.options import READ, STREAM, WRITE, Options
from kgateway.spark.query import query_of
from kgateway.spark.readers.offset_bounds import Bound, ending, of_json, starting, to_json
from kgateway.spark.readers.topic_selection import selection_of
from kgateway.spark.writers.writer import topic_writer_of
from kgateway.topic_partition import TopicPartition

ONE, TWO = TopicPartition("orders", 0), TopicPartition("orders", 1)
EXTENTS = {ONE: Extent(5, 10), TWO: Extent(0, 3)}
WHERE = {"kafka.bootstrap.servers": "one:9092,two:9093", "subscribe": "orders"}


class ScriptedLogs:
    def __init__(
        self,
        times: dict[TopicPartition, OffsetAndTimestamp] | None = None,
        topics: Collection[TopicPartition] = EXTENTS,
    ) -> None:
        self.times = times or {}
        self.topics = topics
        self.asked: list[tuple[list[TopicPartition], int]] = []

    def at_time(
        self, wanted: Collection[TopicPartition], timestamp_ms: int
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        self.asked.append((list(wanted), timestamp_ms))
        return {one: self.times[one] for one in wanted if one in self.times}

    def partitions(self, topics: Collection[str] | None = None) -> dict[str, list[TopicPartition]]:
        found: dict[str, list[TopicPartition]] = {}
        for one in self.topics:
            if topics is None or one.topic in topics:
                found.setdefault(one.topic, []).append(one)
        return found

    def __str__(self) -> str:
        return "the test"


def resolved(bound: Bound, logs: ScriptedLogs | None = None) -> dict[TopicPartition, int]:
    """
    The offsets of the partitions of the test.
    """
    return bound.resolved(logs or ScriptedLogs(), EXTENTS)  # type: ignore[arg-type]  # what is asked of logs here, it has


def read(**given: str) -> Options:
    """
    The options of a batch query.
    """
    return Options(given, READ)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"startingOffset": "earliest"}, "no option startingoffset: did you mean startingOffsets"),
        ({"subscribes": "orders"}, "did you mean subscribe"),
        ({"kafka.bootstrap.server": "x:1"}, "did you mean kafka.bootstrap.servers"),
        ({"isolation.level": "read_committed"}, "did you mean kafka.isolation.level"),
        ({"xyzzy": "1"}, "choose from subscribe, subscribePattern, assign"),
        ({"kafka.group.id": "g"}, "without a consumer group"),
        ({"minOffsetsPerTrigger": "5"}, "use maxOffsetsPerTrigger"),
        ({"topic": "orders"}, "topic is not an option of a batch query, but of a writer"),
        ({"maxOffsetsPerTrigger": "5"}, "but of a streaming query"),
        ({"path": "/tmp/x"}, "take no path"),
        ({"kafka.security.protocol": "SASL_SSL"}, "neither TLS nor a login"),
    ],
)
def test_unknown_options_are_refused(given: dict[str, str], said: str) -> None:
    """
    The error for an unknown option suggests similar names; for an option of another use it names that use.
    """
    with pytest.raises(WrongOption, match=said):
        Options(given, READ)


def test_names_ignore_case() -> None:
    """
    Spark writes the names of options in lower case.
    """
    assert (
        Options({"STARTINGOFFSETS": " earliest ", "checkpointLocation": "x"}, STREAM).text("startingOffsets")
        == "earliest"
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"minPartitions": "many"}, "minPartitions is 'many'; it must be a whole number of at least 1"),
        ({"maxRecordsPerPartition": "0"}, "at least 1"),
        ({"failOnDataLoss": "maybe"}, "true or false"),
        ({"kafka.isolation.level": "dirty"}, "one of read_uncommitted, read_committed"),
        ({"kafka.bootstrap.servers": "nowhere:"}, "it must be HOST or HOST:PORT"),
        ({"assign": "{}"}, "not assign and subscribe|not subscribe and assign"),
        ({"value.format": "xml"}, "value.format is 'xml'; it must be one of avro, json"),
        ({"value.format": "avro", "value.schema": "{"}, "a schema for avro"),
        ({"value.schema": "{}"}, "value.schema is given without value.format"),
    ],
)
def test_wrong_values_are_refused(given: dict[str, str], said: str) -> None:
    """
    The error has the wrong value and the possible ones.
    """
    with pytest.raises(WrongOption, match=said):
        query_of(read(**(WHERE | given)))


def test_a_source_is_required() -> None:
    """
    Servers or a folder are required.
    """
    with pytest.raises(WrongOption, match="name where the topics are"):
        query_of(read(subscribe="orders"))


def test_options_of_a_query() -> None:
    """
    Options arrive where they are used.
    """
    given = {"includeHeaders": "true", "minPartitions": "7", "kafka.isolation.level": "READ_COMMITTED"}
    query = query_of(read(**(WHERE | given), **{"kafka.request.timeout.ms": "1500", "failOnDataLoss": "False"}))
    assert query.wanted.names[-1] == "headers"
    assert query.min_partitions == 7
    assert not query.wanted.fail_on_data_loss
    servers = query.location.servers
    assert servers
    assert [str(one) for one in servers.bootstrap] == ["one:9092", "two:9093"]
    assert (servers.committed_only, servers.answer_s) == (True, 1.5)


@pytest.mark.parametrize(
    ("given", "topics"),
    [
        ({"subscribe": "orders, clicks"}, {"orders", "clicks"}),
        ({"subscribePattern": "c.*"}, {"clicks"}),
        ({"assign": '{"orders": [1]}'}, {"orders"}),
    ],
)
def test_topics_are_named_in_three_ways(given: dict[str, str], topics: set[str]) -> None:
    """
    Topics are named by name, by a pattern for whole names, or partition by partition.
    """
    logs = ScriptedLogs(topics=[ONE, TWO, TopicPartition("clicks", 0), TopicPartition("old-clicks", 0)])
    found = selection_of(read(**given)).partitions(logs)  # type: ignore[arg-type]
    assert {one.topic for one in found} == topics
    assert ONE not in found or "assign" not in given


@pytest.mark.parametrize(
    "given", [{}, {"subscribe": ""}, {"assign": "[]"}, {"assign": '{"a": ["x"]}'}, {"subscribePattern": "("}]
)
def test_topics_are_required(given: dict[str, str]) -> None:
    """
    Missing or unreadable names are refused.
    """
    with pytest.raises(WrongOption, match=r"subscribe|assign"):
        selection_of(read(**given))


@pytest.mark.parametrize(
    "given", [{"subscribe": "orders,nope"}, {"assign": '{"nope": [0]}'}, {"assign": '{"orders": [2]}'}]
)
def test_missing_topics(given: dict[str, str]) -> None:
    """
    The error names a missing topic or partition; a query may accept that.
    """
    logs = ScriptedLogs()
    with pytest.raises(Unreadable, match=r"no topic or partition (nope|orders-2) in the test"):
        selection_of(read(**given)).partitions(logs)  # type: ignore[arg-type]
    found = selection_of(read(**given)).partitions(logs, all_there=False)  # type: ignore[arg-type]
    assert set(found) <= {ONE, TWO}


def test_ends_of_the_log() -> None:
    """
    By default a batch query reads from the first offset to the last, and a stream only new records.
    """
    assert resolved(starting(read(), "earliest")) == {ONE: 5, TWO: 0}
    assert resolved(ending(read())) == {ONE: 10, TWO: 3}
    assert resolved(starting(Options({}, STREAM), "latest")) == {ONE: 10, TWO: 3}


def test_offsets_of_partitions() -> None:
    """
    Each partition has an offset, or -1 for its end and -2 for its start.
    """
    bound = ending(read(endingOffsets='{"orders": {"0": 7, "1": -1}}'))
    assert resolved(bound) == {ONE: 7, TWO: 3}
    bound = starting(read(startingOffsets='{"orders": {"0": -2, "1": 2}}'), "earliest")
    assert resolved(bound) == {ONE: 5, TWO: 2}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"orders": {"0": 7}}', "does not name orders-1"),
        ('{"orders": {"0": 7, "1": 1, "2": 1}}', "names orders-2, which this query does not read"),
        ("soon", "it must be earliest, latest, or JSON"),
        ('{"orders": 7}', "it must be earliest, latest, or JSON"),
        ('{"orders": {"0": -3, "1": 1}}', "it must be earliest, latest, or JSON"),
        ("earliest", "cannot be earliest"),
        ('{"orders": {"0": -2, "1": 1}}', "cannot be earliest"),
    ],
)
def test_invalid_offsets(text: str, said: str) -> None:
    """
    All partitions have to be named, and no others, and the range must not be empty.
    """
    with pytest.raises(WrongOption, match=f"endingOffsets.*{said}"):
        resolved(ending(read(endingOffsets=text)))


def test_a_batch_query_begins_before_the_end() -> None:
    """
    A batch query from the latest offset on would read nothing.
    """
    for text in ("latest", '{"orders": {"0": -1, "1": 0}}'):
        with pytest.raises(WrongOption, match="cannot be latest"):
            starting(read(startingOffsets=text), "earliest")
    assert starting(Options({"startingOffsets": "latest"}, STREAM), "latest").everywhere == -1


def test_timestamps() -> None:
    """
    All partitions share a timestamp or each has its own; timestamps take precedence over offsets.
    """
    logs = ScriptedLogs({ONE: OffsetAndTimestamp(6, 100), TWO: OffsetAndTimestamp(2, 101)})
    given = {"startingTimestamp": "100", "startingOffsets": "earliest"}
    assert resolved(starting(read(**given), "earliest"), logs) == {ONE: 6, TWO: 2}
    assert logs.asked == [([ONE, TWO], 100)]
    each = starting(read(startingOffsetsByTimestamp='{"orders": {"0": 100, "1": 101}}'), "earliest")
    assert resolved(each, logs) == {ONE: 6, TWO: 2}


def test_timestamps_after_the_last_record() -> None:
    """
    Where no record is late enough, the start is an error unless an option allows it; the end is that of the log.
    """
    logs = ScriptedLogs({ONE: OffsetAndTimestamp(6, 100), TWO: OffsetAndTimestamp(None, None)})
    with pytest.raises(WrongOption, match="orders-1 has no record from 100 on"):
        resolved(starting(read(startingTimestamp="100"), "earliest"), logs)
    lenient = read(startingTimestamp="100", startingOffsetsByTimestampStrategy="latest")
    assert resolved(starting(lenient, "earliest"), logs) == {ONE: 6, TWO: 3}
    assert resolved(ending(read(endingTimestamp="100")), logs) == {ONE: 6, TWO: 3}


def test_offsets_in_checkpoints() -> None:
    """
    They have the form that Spark's own Kafka source gives them.
    """
    assert to_json({TWO: 4, ONE: 3}) == {"orders": {"0": 3, "1": 4}}
    assert of_json({"orders": {"0": 3, "1": 4}}) == {ONE: 3, TWO: 4}


def test_options_of_writers() -> None:
    """
    Options arrive where they are used.
    """
    import pyarrow as pa

    given = {"kafka.bootstrap.servers": "one:9092", "topic": "out", "kafka.compression.type": "zstd", "kafka.acks": "1"}
    writing = topic_writer_of(Options(given, WRITE), pa.schema([("value", pa.string()), ("offset", pa.int64())]))
    assert (writing.topic, writing.codec, writing.acks) == ("out", Codec.ZSTD, 1)


@pytest.mark.parametrize(
    ("columns", "given", "said"),
    [
        ({"value": "int64"}, {}, "column value is of type int64: it must be a string or binary"),
        ({"value": "string", "price": "int64"}, {}, "no field for the column price"),
        ({"key": "string"}, {}, "no column value"),
        ({"value": "string"}, {"topic": ""}, "the topic to write to"),
        ({"value": "string", "partition": "int64"}, {}, "must be an int"),
        ({"value": "string"}, {"kafka.acks": "0"}, "one of 1, all, -1"),
    ],
)
def test_invalid_rows(columns: dict[str, str], given: dict[str, str], said: str) -> None:
    """
    Impossible rows, and rows whose columns would be lost, are refused before the first is written.
    """
    import pyarrow as pa

    schema = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in columns.items()])
    options = Options({"kafka.bootstrap.servers": "one:9092", "topic": "out"} | given, WRITE)
    with pytest.raises(WrongOption, match=said):
        topic_writer_of(options, schema)
