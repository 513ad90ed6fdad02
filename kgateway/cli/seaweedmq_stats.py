"""
`kgateway seaweedmq stats`: how topics stand, partition by partition.
"""

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from dataclasses import asdict

from kgateway.broker.seaweedmq.outside import Outside
from kgateway.broker.seaweedmq.standings import Standing, standings
from kgateway.cli.control import add_json, table
from kgateway.cli.seaweedmq_cluster import Say, add_cluster, look, topic_name
from kgateway.cli.seaweedmq_time import utc

_HEADINGS = ("TOPIC", "P", "FORM", "ACKS", "ROWS", "OFFSETS", "FIRST", "LAST", "HIGH", "HELD", "FLUSHED", "PUBLISHERS")
_LIMITS = (60, 5, 6, 8, 12, 30, 19, 19, 16, 24, 16, 60)

_EPILOG = """\
ROWS are those of the ledger that are kept; FIRST and LAST are their times (UTC). Before HIGH consumers can read, before
HELD all is at least in the memory of a broker of SeaweedMQ, and before FLUSHED it is in files; (+N) are messages in its
memory that are in no file. PUBLISHERS are streams to it, by the addresses that they come from. A dash: there is none,
or nobody can tell. ACKS is what the topic sets; a gateway has a default of its own.

Examples:
  kgateway seaweedmq stats --masters master1:9333
  kgateway seaweedmq stats --masters master1:9333 --json orders
"""


def add_arguments(parser: ArgumentParser) -> None:
    """
    What can be asked for.
    """
    add_cluster(parser)
    add_json(parser)
    parser.add_argument(
        "topics", metavar="TOPIC", nargs="*", type=topic_name, help="only these; without any, all there are"
    )
    parser.epilog = _EPILOG


def run(options: Namespace) -> Iterable[str]:
    """
    It prints them, and ends the program.
    """
    look(options, lambda outside, say: _stats(outside, options, say))
    return ()


async def _stats(outside: Outside, options: Namespace, say: Say) -> int:
    topics = await outside.topics(options.topics)
    await outside.load()
    found = await standings(outside, topics)
    lines = [json.dumps(list(map(_told, found)), indent=2)] if options.json else _lines(found)
    for line in lines:
        say(line)
    return 0


def _told(standing: Standing) -> dict[str, object]:
    """
    For programs.
    """
    return {**asdict(standing), "slots": list(standing.slots), "high_watermark": standing.high_watermark}


def _lines(found: list[Standing]) -> list[str]:
    return table(_HEADINGS, _LIMITS, list(map(_cells, found))) if found else ["there are no topics"]


def _cells(standing: Standing) -> list[str]:
    held, more = standing.held, standing.messages_held
    return [
        standing.topic,
        str(standing.partition),
        standing.form,
        standing.acks or "-",
        f"{standing.rows:,}",
        f"{standing.start} to {standing.flushed - 1}" if standing.flushed > standing.start else "none",
        utc(standing.first_ns),
        utc(standing.last_ns),
        _number(standing.high_watermark),
        _number(held) + (f" (+{more:,})" if more else ""),
        str(standing.flushed),
        ", ".join(standing.publishers) or "-",
    ]


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)
