"""
`kgateway seaweedmq stats`: how topics stand, partition by partition.
"""

from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from typing import TYPE_CHECKING

from kgateway.cli.common.output import Column, table
from kgateway.cli.common.times import utc
from kgateway.cli.seaweedmq.cluster import Say, seaweedmq_command, topic_name

if TYPE_CHECKING:
    from kgateway.broker.seaweedmq.inspection.partition_status import PartitionStatus
    from kgateway.broker.seaweedmq.inspection.read_only_cluster import ReadOnlyCluster

_COLUMNS = (
    Column("TOPIC", 60),
    Column("P", 5),
    Column("FORMAT", 6),
    Column("ACKS", 8),
    Column("ROWS", 12),
    Column("OFFSETS", 30),
    Column("FIRST", 19),
    Column("LAST", 19),
    Column("HIGH", 16),
    Column("HELD", 24),
    Column("FLUSHED", 16),
    Column("PUBLISHERS", 60),
)

_EPILOG = """\
ROWS are the saved rows of the ledger; FIRST and LAST are their times (UTC). Consumers can read everything before HIGH.
Everything before HELD is at least in the memory of a broker of SeaweedMQ, and everything before FLUSHED is in files;
(+N) are messages in its memory that are in no file. PUBLISHERS are the addresses of the streams to it. A
dash means that there is none, or that it is unknown. ACKS is the config of the topic; if it is not set, the default of
the gateway applies.

example:
  $ kgateway seaweedmq stats --masters master1:9333
  $ kgateway seaweedmq stats --masters master1:9333 --json orders
"""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("topics", metavar="TOPIC", nargs="*", type=topic_name, help="only these topics (default all)")


async def _show(options: Namespace, outside: "ReadOnlyCluster", say: Say) -> int:
    from kgateway.broker.seaweedmq.inspection.partition_status import partition_statuses

    topics = await outside.topics(options.topics)
    found = await partition_statuses(outside, topics)
    if options.json:
        say({"partitions": [_json(one) for one in found]})
        return 0
    for line in table(_COLUMNS, [_row(one) for one in found]) if found else ["there are no topics"]:
        say(line)
    return 0


STATS = seaweedmq_command(_add_arguments, _show, _EPILOG)


def _json(standing: "PartitionStatus") -> dict[str, object]:
    return {**asdict(standing), "high_watermark": standing.high_watermark}


def _row(standing: "PartitionStatus") -> list[object]:
    held, more = standing.held, standing.messages_held
    return [
        standing.topic,
        standing.partition,
        standing.format,
        standing.acks or None,
        f"{standing.rows:,}",
        f"{standing.start} to {standing.flushed - 1}" if standing.flushed > standing.start else "none",
        utc(standing.first_ns),
        utc(standing.last_ns),
        standing.high_watermark,
        ("-" if held is None else str(held)) + (f" (+{more:,})" if more else ""),
        standing.flushed,
        ", ".join(standing.publishers) or None,
    ]
