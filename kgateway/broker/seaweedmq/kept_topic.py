"""
What this gateway keeps beside a topic's `topic.conf`, because SeaweedMQ has no place for it: a line of JSON.

    version       1
    id            the topic id
    internal      whether it is one of Kafka's own
    found         whether others made it: what it has is theirs
    configs       Kafka's configs that were set, as they were set
    generations   the partitions SeaweedMQ made for the topic, oldest first:
        unixTimeNs    when it made them; text, as SeaweedMQ writes it
        partitions    by Kafka's index: start and stop of the range, Kafka's offset of the first message that can
                      be in it, and SeaweedMQ's offset of that message

What a topic is to be is written as the same line, without generations, before SeaweedMQ makes it.

When a topic grows, SeaweedMQ makes all partitions anew and forgets the old ones; here they stay, so that their files
are read as the beginning of the partition. Keys that are not known are passed over.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from kgateway.broker.seaweedmq.forms.by_name import FORMS
from kgateway.broker.seaweedmq.forms.form import Form
from kgateway.broker.seaweedmq.forms.record import RecordForm
from kgateway.broker.seaweedmq.layout import NAMESPACE, Range, partition_folder
from kgateway.wire.malformed import Malformed, Place
from kgateway.wire.uuids import Uuid

VERSION = 1
FORMAT = "seaweedmq.format"
_RECORD = "kept topic"


class Stretch(NamedTuple):
    """
    The part of a partition's log that is in one folder: from one of Kafka's offsets on.
    """

    part: Range
    kafka_start: int
    message_start: int  # SeaweedMQ's offset of the same message

    @property
    def shift(self) -> int:
        """
        What Kafka's offsets are ahead of SeaweedMQ's, where messages are records.
        """
        return self.kafka_start - self.message_start


@dataclass(frozen=True, slots=True)
class Generation:
    """
    Partitions that were made together.
    """

    unix_time_ns: int
    stretches: tuple[Stretch, ...]  # by Kafka's index


@dataclass(frozen=True, slots=True)
class KeptTopic:
    """
    A topic, as far as SeaweedMQ does not know it.
    """

    id: Uuid
    generations: tuple[Generation, ...]
    configs: Mapping[str, str] = field(default_factory=dict)
    internal: bool = False
    found: bool = False

    @property
    def form(self) -> Form:
        """
        The form of its messages.
        """
        return FORMS[self.configs.get(FORMAT, RecordForm.name)]

    @property
    def partition_count(self) -> int:
        """
        The partitions that it has today.
        """
        return len(self.generations[-1].stretches)

    @property
    def most_partitions(self) -> int:
        """
        The partitions that it has, or had before others gave it fewer.
        """
        return max((len(generation.stretches) for generation in self.generations), default=0)

    def grown(
        self, unix_time_ns: int, parts: Sequence[Range], ends: Sequence[int], messages: Sequence[int] = ()
    ) -> "KeptTopic":
        """
        The topic with partitions made anew. Each goes on at the offset where the one of its index ended, one that had
        none before begins at 0; `messages` are the offsets with which SeaweedMQ begins, 0 where nothing is said.
        """
        stretches = tuple(Stretch(part, _at(ends, index), _at(messages, index)) for index, part in enumerate(parts))
        return replace(self, generations=(*self.generations, Generation(unix_time_ns, stretches)))

    def folders(self, name: str, index: int, namespace: str = NAMESPACE) -> list[tuple[str, Stretch]]:
        """
        Where the log of a partition is, oldest part first.
        """
        return [
            (partition_folder(name, generation.unix_time_ns, stretch.part, namespace), stretch)
            for generation in self.generations
            for stretch in generation.stretches[index : index + 1]
        ]

    def written(self) -> bytes:
        """
        The line.
        """
        return json.dumps(
            {
                "version": VERSION,
                "id": str(self.id),
                "internal": self.internal,
                "found": self.found,
                "configs": dict(self.configs),
                "generations": [_written(generation) for generation in self.generations],
            }
        ).encode()


def read_kept_topic(data: bytes) -> KeptTopic:
    """
    The topic that the line tells of.
    """
    kept = read_intended_topic(data)
    if not kept.generations:
        raise _malformed("JSON", "it tells of no partitions")
    return kept


def read_intended_topic(data: bytes) -> KeptTopic:
    """
    The topic that the line tells of, which may have no partitions yet.
    """
    try:
        told = json.loads(data)
        if told["version"] != VERSION:
            raise _malformed("version", f"version {told['version']!r}, and this gateway reads {VERSION}")
        topic_id, generations = Uuid.parse(told["id"]), tuple(map(_generation, told["generations"]))
        internal, found = told["internal"], told.get("found", False)
        configs = {str(name): _text(value) for name, value in told["configs"].items()}
        kept = KeptTopic(topic_id, generations, configs, internal, found)
    except Malformed:
        raise
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as failure:
        raise _malformed("JSON", f"{type(failure).__name__}: {failure}") from None
    if type(internal) is not bool or type(found) is not bool:
        raise _malformed("JSON", "it does not tell whether the topic is internal, or others made it")
    if configs.get(FORMAT, RecordForm.name) not in FORMS:
        raise _malformed(FORMAT, f"nothing is known here of messages of the form {configs[FORMAT]}")
    return kept


def _at(offsets: Sequence[int], index: int) -> int:
    return offsets[index] if index < len(offsets) else 0


def _written(generation: Generation) -> dict[str, Any]:
    partitions = [[*part, *offsets] for part, *offsets in generation.stretches]
    return {"unixTimeNs": str(generation.unix_time_ns), "partitions": partitions}


def _generation(told: Mapping[str, Any]) -> Generation:
    stretches = tuple(_stretch(*map(_number, partition)) for partition in told["partitions"])
    return Generation(int(told["unixTimeNs"]), stretches)


def _stretch(start: int, stop: int, kafka_start: int, message_start: int) -> Stretch:
    return Stretch(Range(start, stop), kafka_start, message_start)


def _number(value: object) -> int:
    if type(value) is not int:
        raise ValueError(f"{value!r} is no number")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no text")
    return value


def _malformed(what: str, reason: str) -> Malformed:
    return Malformed(Place(_RECORD, VERSION, what), 0, reason)
