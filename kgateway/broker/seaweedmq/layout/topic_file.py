"""
The file `kgateway.json` beside a topic's `topic.conf`, with what SeaweedMQ has no place for: a line of JSON.

    version       1
    id            the topic id
    internal      whether it is one of Kafka's own
    found         whether others made it: what it has is theirs
    configs       Kafka's configs that were set, as they were set
    generations   the partitions SeaweedMQ made for the topic, oldest first:
        unixTimeNs    when it made them; text, as SeaweedMQ writes it
        partitions    by Kafka's index: start and stop of the range, Kafka's offset of the first message that can
                      be in it, and SeaweedMQ's offset of that message

Before SeaweedMQ makes a topic, the intent is written as the same line, without generations.

When a topic grows, SeaweedMQ recreates all partitions and forgets the old ones; here they are kept, so that their files
are read as the beginning of the partition. Unknown keys are ignored.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from kgateway.broker.seaweedmq.formats.format import MessageFormat
from kgateway.broker.seaweedmq.formats.record import RecordFormat
from kgateway.broker.seaweedmq.formats.registry import FORMAT, FORMATS
from kgateway.broker.seaweedmq.layout.topic_paths import RingRange, partition_folder
from kgateway.wire.errors import Malformed, MessageField
from kgateway.wire.uuids import Uuid

VERSION = 1
_RECORD = "kgateway.json"


class GenerationPartition(NamedTuple):
    """
    The part of a partition's log that is in one folder: from one of Kafka's offsets on.
    """

    part: RingRange
    kafka_start: int
    message_start: int  # SeaweedMQ's offset of the same message


@dataclass(frozen=True, slots=True)
class Generation:
    """
    Partitions that SeaweedMQ made together.
    """

    unix_time_ns: int
    partitions: tuple[GenerationPartition, ...]  # by Kafka's index


@dataclass(frozen=True, slots=True)
class TopicFile:
    id: Uuid
    generations: tuple[Generation, ...]
    configs: Mapping[str, str] = field(default_factory=dict)
    internal: bool = False
    is_foreign: bool = False  # another program has made the topic

    @property
    def format(self) -> MessageFormat:
        return FORMATS[self.configs.get(FORMAT, RecordFormat.name)]

    @property
    def partition_count(self) -> int:
        """
        How many partitions Kafka's clients see: all that the topic ever had.
        """
        return max((len(generation.partitions) for generation in self.generations), default=0)

    @property
    def assigned_count(self) -> int:
        """
        How many partitions SeaweedMQ has: fewer if another program has removed some.
        """
        return len(self.generations[-1].partitions)

    def grown(
        self, unix_time_ns: int, parts: Sequence[RingRange], ends: Sequence[int], messages: Sequence[int] = ()
    ) -> "TopicFile":
        """
        The topic with recreated partitions. Each continues at the offset where the one of its index ended, a new one
        begins at 0; `messages` are the offsets with which SeaweedMQ begins, 0 if none is given.
        """
        partitions = tuple(
            GenerationPartition(part, _at(ends, index), _at(messages, index)) for index, part in enumerate(parts)
        )
        return replace(self, generations=(*self.generations, Generation(unix_time_ns, partitions)))

    def encoded(self) -> bytes:
        return json.dumps(
            {
                "version": VERSION,
                "id": str(self.id),
                "internal": self.internal,
                "found": self.is_foreign,
                "configs": dict(self.configs),
                "generations": [_generation_fields(generation) for generation in self.generations],
            }
        ).encode()


def read_topic_file(data: bytes) -> TopicFile:
    file = read_intent(data)
    if not file.generations:
        raise _malformed("JSON", "it describes no partitions")
    return file


def read_intent(data: bytes) -> TopicFile:
    try:
        fields = json.loads(data)
        if fields["version"] != VERSION:
            raise _malformed("version", f"version {fields['version']!r}, but this gateway reads {VERSION}")
        topic_id, generations = Uuid.parse(fields["id"]), tuple(map(_generation, fields["generations"]))
        internal, is_foreign = fields["internal"], fields.get("found", False)
        configs = {str(name): _text(value) for name, value in fields["configs"].items()}
        file = TopicFile(topic_id, generations, configs, internal, is_foreign)
    except Malformed:
        raise
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as failure:
        raise _malformed("JSON", f"{type(failure).__name__}: {failure}") from None
    if type(internal) is not bool or type(is_foreign) is not bool:
        raise _malformed("JSON", "it does not say whether the topic is internal, or was created by another program")
    if configs.get(FORMAT, RecordFormat.name) not in FORMATS:
        raise _malformed(FORMAT, f"this gateway does not know the message format {configs[FORMAT]}")
    return file


def _at(offsets: Sequence[int], index: int) -> int:
    return offsets[index] if index < len(offsets) else 0


def _generation_fields(generation: Generation) -> dict[str, Any]:
    partitions = [[*part, *offsets] for part, *offsets in generation.partitions]
    return {"unixTimeNs": str(generation.unix_time_ns), "partitions": partitions}


def _generation(fields: Mapping[str, Any]) -> Generation:
    partitions = tuple(_generation_partition(*map(_number, partition)) for partition in fields["partitions"])
    return Generation(int(fields["unixTimeNs"]), partitions)


def _generation_partition(start: int, stop: int, kafka_start: int, message_start: int) -> GenerationPartition:
    return GenerationPartition(RingRange(start, stop), kafka_start, message_start)


def _number(value: object) -> int:
    if type(value) is not int:
        raise ValueError(f"{value!r} is not a number")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a string")
    return value


def _malformed(what: str, reason: str) -> Malformed:
    return Malformed(MessageField(_RECORD, VERSION, what), 0, reason)


class PartitionFolder(NamedTuple):
    """
    A folder with log files of a partition, one for each generation of its topic.
    """

    path: str
    shift: int  # Kafka's offsets minus SeaweedMQ's, if messages are records
    first_message: int  # SeaweedMQ's offset of the first message that can be in it
    unix_time_ns: int  # of its generation
    part: RingRange


def folders_of(file: TopicFile, name: str, index: int, namespace: str) -> list[PartitionFolder]:
    """
    The folders of a partition, oldest first. Generations of one second may share one, in which brokers count on.
    """
    found = dict[str, PartitionFolder]()
    for generation in file.generations:
        for part, kafka_start, message_start in generation.partitions[index : index + 1]:
            path = partition_folder(name, generation.unix_time_ns, part, namespace)
            shift = kafka_start - message_start
            found.pop(path, None)
            found[path] = PartitionFolder(path, shift, message_start, generation.unix_time_ns, part)
    return list(found.values())
