"""
`kgateway spark backfill`: files (Parquet, JSON, CSV) into a topic. Each row becomes a record, once, those of a key in
their order; run again it goes on where it was cut off. In the end it marks where live records begin.
"""

import sys
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from kgateway.cli.asking import add_server
from kgateway.cli.control import table
from kgateway.cli.layout import counted, right_aligned
from kgateway.cli.named import unknown
from kgateway.cli.refused import Refused
from kgateway.cli.spark_progress import watching
from kgateway.cli.spark_session import session
from kgateway.client.cluster import Cluster
from kgateway.client.connection import Unanswered
from kgateway.client.topics import Topic, topics
from kgateway.records.compression import Codec
from kgateway.wire.errors import KafkaError

if TYPE_CHECKING:
    from kgateway.spark.backfill.job import Backfill, Ended

EXAMPLE = "kgateway spark backfill orders.csv --topic orders --key customer --timestamp at --order-by at"
_CODECS = {codec.name.lower(): codec for codec in Codec}
_HEADINGS = ("PARTITION", "ROWS", "FROM", "LIVE FROM", "OTHERS")
_LIMITS = (9, 20, 20, 20, 20)
_LOOK_S = 1.0


def add_arguments(parser: ArgumentParser) -> None:
    """
    What can be asked for.
    """
    parser.add_argument("files", metavar="FILE", nargs="+", help="a file, a folder, or what Spark can reach")
    parser.add_argument("--topic", metavar="NAME", required=True, help="where to; it has to be there")
    parser.add_argument("--format", choices=("parquet", "json", "csv"), help="of the files; else their names say it")
    parser.add_argument(
        "--schema", metavar="DDL", help="what the columns are, such as 'id long, at timestamp'; else CSV has texts"
    )
    parser.add_argument("--key", metavar="COLUMN", help="the key; without one a row's value says where it goes")
    parser.add_argument("--value", metavar="COLUMN", help="the value; else all columns, as JSON")
    parser.add_argument(
        "--timestamp", metavar="COLUMN", help="the time of each record: a time, or milliseconds since 1970; else now"
    )
    parser.add_argument(
        "--order-by", metavar="COLUMN", type=_names, default=[], help="the order, or several with commas between; "
        "else, and where they are the same, that of the files"
    )  # fmt: skip
    parser.add_argument("--rate", metavar="N", type=_rate, help="no more than N rows a second")
    parser.add_argument("--compression", choices=[*_CODECS], default="none", help="of the batches")
    parser.add_argument(
        "--state", metavar="FILE", type=Path, help="what it was begun with, to go on with; else backfill-TOPIC.json"
    )
    parser.add_argument(
        "--group", metavar="NAME", help="the group whose offsets mark where live records begin; else backfill-TOPIC"
    )
    parser.add_argument(
        "--marker", action="store_true", help="a last record in each partition, with the key kgateway-backfill"
    )
    add_server(parser)


def run(options: Namespace) -> Iterator[str]:
    """
    What is in the topic then.
    """
    with Cluster(options.bootstrap, options.timeout) as cluster:
        known = cluster.settled(partial(topics, cluster))
        if options.topic not in known:
            raise Refused(f"{unknown(options.topic, known)}; `kgateway topics create` makes it")
        began = time.monotonic()
        with session(options) as spark:
            backfill = _wanted(options, known[options.topic])
            with watching(partial(_watch, backfill, options)):
                ended = backfill.run(spark, cluster)
        yield from _told(backfill, ended, time.monotonic() - began)


def _wanted(options: Namespace, topic: Topic) -> "Backfill":
    from kgateway.spark.backfill.files import Source
    from kgateway.spark.backfill.job import Backfill
    from kgateway.spark.backfill.rows import Form

    return Backfill(
        source=Source(options.files, options.format, options.schema),
        form=Form(options.key, options.value, options.timestamp, options.order_by),
        topic=topic,
        bootstrap=tuple(options.bootstrap),
        state=options.state or Path(f"backfill-{topic.name}.json"),
        group=options.group or f"backfill-{topic.name}",
        marker=options.marker,
        codec=_CODECS[options.compression],
        rate=options.rate,
        patience_s=options.timeout,
        tell=lambda words: print(words, file=sys.stderr, flush=True),
    )


def _watch(backfill: "Backfill", options: Namespace, over: Event) -> None:
    """
    Tell how far it has come while it goes on.
    """
    while not over.wait(_LOOK_S):
        try:
            with Cluster(options.bootstrap, options.timeout) as cluster:
                so_far = backfill.so_far(cluster)
        except (KafkaError, Unanswered):  # whoever sends tells of it, if it lasts
            continue
        if so_far:
            come, of = so_far
            sys.stderr.write(f"\r{min(come, of):,} of {of:,} rows, {min(come / max(of, 1), 1):.0%}\x1b[K")
            sys.stderr.flush()
    sys.stderr.write("\r\x1b[K")


def _told(backfill: "Backfill", ended: "Sequence[Ended]", seconds: float) -> Iterator[str]:
    rows = [tuple(map(str, (one.index, one.rows, one.start, one.end, one.others))) for one in ended]
    headings, *cells = right_aligned(_HEADINGS, rows)
    yield from table(headings, _LIMITS, cells)
    every, others = sum(one.rows for one in ended), sum(one.others for one in ended)
    yield f"{counted(every, 'row')} in {backfill.topic.name}, in {seconds:.1f} s"
    if others:
        yield f"{counted(others, 'record')} of others among them: somebody wrote before the hand-over"
    yield f"live records begin where the group {backfill.group} does"


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise ArgumentTypeError(f"{text!r} is no COLUMN or COLUMN,COLUMN")
    return names


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0
    if not 0 < rate < float("inf"):
        raise ArgumentTypeError(f"{text!r} is no number above 0")
    return rate
