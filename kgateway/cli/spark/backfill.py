"""
`kgateway spark backfill`: files (Parquet, JSON, CSV) into a topic.
"""

import sys
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kgateway.cli.common.cluster import add_server, choose_cluster
from kgateway.cli.common.errors import UnknownTopicOrPartition
from kgateway.cli.common.json_document import Json
from kgateway.cli.common.output import Column, table
from kgateway.cli.common.progress import Progress, watching
from kgateway.cli.common.topic_names import all_topics, no_such_topic
from kgateway.cli.common.values import rate
from kgateway.cli.spark.session import session, spark_job
from kgateway.client.cluster import Cluster
from kgateway.client.connection import Unanswered
from kgateway.client.topics import TopicDescription
from kgateway.plurals import counted
from kgateway.records.compression import Codec
from kgateway.wire.errors import KafkaError

if TYPE_CHECKING:
    from kgateway.spark.backfill.job import Backfill, PartitionResult

_CODECS = {codec.name.lower(): codec for codec in Codec}
_COLUMNS = tuple(
    Column(heading, 20, is_number=True) for heading in ("PARTITION", "ROWS", "FROM", "LIVE FROM", "OTHERS")
)
_LOOK_S = 1.0
_INTERRUPTED_S = 2.0  # how long a server may take to say how far the job came


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", nargs="+", help="a file, a folder, or a URL that Spark can read")
    parser.add_argument("--topic", metavar="NAME", required=True, help="the topic to fill, which must exist")
    parser.add_argument(
        "--format",
        choices=("parquet", "json", "csv"),
        help="the format of the files (default: from their names)",
    )
    parser.add_argument(
        "--schema",
        metavar="DDL",
        help="the columns and their types, such as 'id long, at timestamp' (default: columns of CSV are strings)",
    )
    parser.add_argument(
        "--key", metavar="COLUMN", help="the key; without one, the value of a row selects its partition"
    )
    parser.add_argument("--value", metavar="COLUMN", help="the value (default all columns, as JSON)")
    parser.add_argument(
        "--timestamp",
        metavar="COLUMN",
        help="the timestamp of each record: a time, or milliseconds since 1970 (default now)",
    )
    parser.add_argument(
        "--order-by", metavar="COLUMN", type=_names, default=[], help="the columns to sort by, separated by commas; "
        "equal rows keep the order of the files (default: all rows do)"
    )  # fmt: skip
    parser.add_argument("--rate", metavar="N", type=rate, help="at most N rows per second")
    parser.add_argument("--compression", choices=[*_CODECS], default="none", help="the compression of batches")
    parser.add_argument(
        "--state",
        metavar="FILE",
        type=Path,
        help="where the job stores what it needs to continue (default backfill-TOPIC.json)",
    )
    parser.add_argument(
        "--group",
        metavar="NAME",
        help="the group whose offsets mark where live records begin (default backfill-TOPIC)",
    )
    parser.add_argument(
        "--marker", action="store_true", help="append a final record with the key kgateway-backfill to each partition"
    )
    add_server(parser)


def _run(options: Namespace) -> Iterator[str | Json]:
    choose_cluster(options)
    with Cluster(options.bootstrap, options.timeout) as cluster:
        known = all_topics(cluster)
        if options.topic not in known:
            raise UnknownTopicOrPartition(f"{no_such_topic(options.topic, known)}; `kgateway topics create` creates it")
        began = time.monotonic()
        with session(options) as spark:
            backfill = _wanted(options, known[options.topic])
            with watching(Progress(unit="rows"), partial(_rows_so_far, options, options.timeout), _LOOK_S):
                ended = backfill.run(spark, cluster)
        if options.json:
            yield _json(backfill, ended)
        else:
            yield from _outcome(backfill, ended, time.monotonic() - began)


def _state_file(options: Namespace) -> Path:
    return options.state or Path(f"backfill-{options.topic}.json")


def _rows_so_far(options: Namespace, patience_s: float) -> tuple[int, int] | None:
    """
    How many rows are in the topic, at most, and how many will be; None if that is not known.
    """
    from kgateway.spark.backfill.job import so_far
    from kgateway.spark.errors import Unreadable

    try:
        with Cluster(options.bootstrap, patience_s) as cluster:
            reached = so_far(cluster, _state_file(options))
    except (KafkaError, Unanswered, Unreadable):  # the job reports it, if it lasts
        return None
    return reached and (min(reached), reached[1])


def _if_interrupted(options: Namespace) -> str:
    reached = _rows_so_far(options, _INTERRUPTED_S)
    if reached:
        return f"{reached[0]:,} of {reached[1]:,} rows are in {options.topic}; run the same command again to continue"
    return "run the same command again to continue" if _state_file(options).exists() else "no row was sent"


BACKFILL = spark_job(
    _add_arguments,
    _run,
    "kgateway spark backfill orders.csv --topic orders --key customer --timestamp at --order-by at",
    if_interrupted=_if_interrupted,
)


def _wanted(options: Namespace, topic: TopicDescription) -> "Backfill":
    from kgateway.spark.backfill.files import Source
    from kgateway.spark.backfill.job import Backfill
    from kgateway.spark.backfill.rows import RowMapping

    return Backfill(
        source=Source(options.files, options.format, options.schema),
        form=RowMapping(options.key, options.value, options.timestamp, options.order_by),
        topic=topic,
        bootstrap=tuple(options.bootstrap),
        state=_state_file(options),
        group=options.group or f"backfill-{topic.name}",
        marker=options.marker,
        codec=_CODECS[options.compression],
        rate=options.rate,
        patience_s=options.timeout,
        report=lambda words: print(words, file=sys.stderr, flush=True),
    )


def _json(backfill: "Backfill", ended: "Sequence[PartitionResult]") -> Json:
    names = {"partition": "index", "rows": "rows", "from": "start", "live_from": "end", "others": "others"}
    rows = [{name: getattr(one, field) for name, field in names.items()} for one in ended]
    return {"topic": backfill.topic.name, "group": backfill.group, "partitions": rows}


def _outcome(backfill: "Backfill", ended: "Sequence[PartitionResult]", seconds: float) -> Iterator[str]:
    yield from table(_COLUMNS, [(one.index, one.rows, one.start, one.end, one.others) for one in ended])
    every, others = sum(one.rows for one in ended), sum(one.others for one in ended)
    yield f"{counted(every, 'row')} in {backfill.topic.name}, in {seconds:.1f} s"
    if others:
        yield f"{counted(others, 'record')} of other producers among them, which wrote before the hand-over"
    yield f"live records begin at the committed offsets of the group {backfill.group}"


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise ArgumentTypeError(f"{text!r} is not COLUMN or COLUMN,COLUMN")
    return names
