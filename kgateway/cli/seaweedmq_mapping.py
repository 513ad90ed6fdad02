"""
`kgateway seaweedmq mapping`: which message of SeaweedMQ holds one of Kafka's offsets.
"""

import json
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterable

from kgateway.broker.seaweedmq.layout import generation_name, slots
from kgateway.broker.seaweedmq.ledger import EARLIEST, LATEST
from kgateway.broker.seaweedmq.outside import NotThere, Outside
from kgateway.cli.control import add_json
from kgateway.cli.seaweedmq_cluster import Say, add_cluster, look, topic_name
from kgateway.cli.seaweedmq_time import utc

_NAMED = {"earliest": EARLIEST, "latest": LATEST}

_EPILOG = """\
It is told from what is kept of the ledger, and from the log files behind it. What is only in the memory of a broker is
in neither.

Examples:
  kgateway seaweedmq mapping --masters master1:9333 orders 0 1042
  kgateway seaweedmq mapping --masters master1:9333 --json orders 0 latest
"""


def add_arguments(parser: ArgumentParser) -> None:
    """
    What can be asked for.
    """
    add_cluster(parser)
    add_json(parser)
    parser.add_argument("topic", metavar="TOPIC", type=topic_name)
    parser.add_argument("partition", metavar="PARTITION", type=int)
    parser.add_argument(
        "offset", metavar="OFFSET", type=_offset, help="one of Kafka's offsets; `earliest` (-2) and `latest` (-1)"
    )
    parser.epilog = _EPILOG


def run(options: Namespace) -> Iterable[str]:
    """
    It prints the mapping, and ends the program.
    """
    look(options, lambda outside, say: _mapping(outside, options, say))
    return ()


def _offset(text: str) -> int:
    if text in _NAMED:
        return _NAMED[text]
    try:
        offset = int(text)
    except ValueError:
        offset = EARLIEST - 1
    if offset < EARLIEST:
        raise ArgumentTypeError(f"{text!r} is no offset; say a number, `earliest` or `latest`")
    return offset


async def _mapping(outside: Outside, options: Namespace, say: Say) -> int:
    told = await _told(outside, options.topic, options.partition, options.offset)
    if options.json:
        say(json.dumps(told, indent=2))
        return 0
    width = max(map(len, told))
    for name, value in told.items():
        say(f"{name.replace('_', ' '):<{width}}  {value}")
    return 0


async def _told(outside: Outside, topic: str, partition: int, offset: int) -> dict[str, object]:
    (stored,) = await outside.topics([topic])
    count = stored.kept.partition_count
    if not 0 <= partition < count:
        there = "partition 0" if count == 1 else f"partitions 0 to {count - 1}"
        raise NotThere(f"topic {topic} has {there}, and no {partition}")
    await outside.load()
    ledger = await outside.ledger(stored, partition)
    found = ledger.at(offset)
    if found is None or (offset >= 0 and found.offset != offset):
        there = (
            f"offsets {ledger.start} to {ledger.end - 1} in files, and no {offset}"
            if ledger.rows
            else "no offsets in files"
        )
        raise NotThere(f"{topic}-{partition} has {there}")
    history = outside.history(stored, partition)
    await history.refresh()
    first, stop = slots(partition)
    return {
        "topic": topic,
        "partition": partition,
        "offset": found.offset,
        "message": found.message,
        "message_begins_with_offset": found.batch_offset,
        "published_not_before": f"{utc(found.ts_ns)}.{found.ts_ns % 10**9:09} UTC ({found.ts_ns})",
        "file": await history.path_of(found.offset),
        "generation": generation_name(found.section.unix_time_ns),
        "ring_range": f"{found.section.part.start} to {found.section.part.stop - 1}",
        "slots_in_ledger": f"{first} to {stop - 1}",
    }
