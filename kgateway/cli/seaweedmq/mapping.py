"""
`kgateway seaweedmq mapping`: which message of SeaweedMQ holds one of Kafka's offsets.
"""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import TYPE_CHECKING

from kgateway.cli.common.times import utc
from kgateway.cli.seaweedmq.cluster import Say, seaweedmq_command, topic_name

if TYPE_CHECKING:
    from kgateway.broker.seaweedmq.inspection.read_only_cluster import ReadOnlyCluster

_EPILOG = """\
The result comes from the saved ledger and from the log files after it. Messages that are only in the memory of a
broker are in neither.

example:
  $ kgateway seaweedmq mapping --masters master1:9333 orders 0 1042
  $ kgateway seaweedmq mapping --masters master1:9333 --json orders 0 latest
"""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("topic", metavar="TOPIC", type=topic_name, help="the name of a topic")
    parser.add_argument("partition", metavar="PARTITION", type=int, help="the number of a partition")
    parser.add_argument(
        "offset", metavar="OFFSET", type=_offset, help="an offset of Kafka, or `earliest` (-2) or `latest` (-1)"
    )


def _offset(text: str) -> int:
    from kgateway.broker.seaweedmq.ledger.ledger import EARLIEST, LATEST

    named = {"earliest": EARLIEST, "latest": LATEST}
    if text in named:
        return named[text]
    try:
        offset = int(text)
    except ValueError:
        offset = EARLIEST - 1
    if offset < EARLIEST:
        raise ArgumentTypeError(f"{text!r} is not an offset: must be a number, `earliest` or `latest`")
    return offset


async def _show(options: Namespace, outside: "ReadOnlyCluster", say: Say) -> int:
    mapping = await _mapping(outside, options.topic, options.partition, options.offset)
    if options.json:
        say(mapping)
        return 0
    width = max(map(len, mapping))
    for name, value in mapping.items():
        say(f"{name.replace('_', ' '):<{width}}  {value}")
    return 0


MAPPING = seaweedmq_command(_add_arguments, _show, _EPILOG)


async def _mapping(outside: "ReadOnlyCluster", topic: str, partition: int, offset: int) -> dict[str, object]:
    from kgateway.broker.seaweedmq.inspection.read_only_cluster import TopicNotFound
    from kgateway.broker.seaweedmq.layout.topic_paths import generation_name

    (stored,) = await outside.topics([topic])
    count = stored.file.partition_count
    if not 0 <= partition < count:
        there = "partition 0" if count == 1 else f"partitions 0 to {count - 1}"
        raise TopicNotFound(f"topic {topic} has {there}, and no {partition}")
    ledger = await outside.ledger(stored, partition)
    found = ledger.at(offset)
    if found is None or (offset >= 0 and found.offset != offset):
        there = (
            f"offsets {ledger.start} to {ledger.end - 1} in files, and no {offset}"
            if ledger.rows
            else "no offsets in files"
        )
        raise TopicNotFound(f"{topic}-{partition} has {there}")
    history = outside.partition_files(stored, partition)
    await history.refresh()
    return {
        "topic": topic,
        "partition": partition,
        "offset": found.offset,
        "message": found.message_offset,
        "message_begins_with_offset": found.batch_offset,
        "published_not_before": f"{utc(found.ts_ns)}.{found.ts_ns % 10**9:09} UTC ({found.ts_ns})",
        "file": await history.path_of(found.offset),
        "generation": generation_name(found.section.unix_time_ns),
        "ring_range": f"{found.section.part.start} to {found.section.part.stop - 1}",
    }
