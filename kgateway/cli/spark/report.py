"""
`kgateway spark report`: what is in topics, as one page of HTML with plots.
"""

import json
import sys
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgateway.cli.common.cluster import add_server, choose_cluster
from kgateway.cli.common.json_document import Json
from kgateway.cli.common.times import TIMES, option_time_ms
from kgateway.cli.common.topic_names import all_topics, matching_topics
from kgateway.cli.spark.locations import check_new_file
from kgateway.cli.spark.session import session, spark_job
from kgateway.client.cluster import Cluster
from kgateway.client.offsets import Extent, extents, offsets_at
from kgateway.client.topics import TopicDescription
from kgateway.plurals import counted
from kgateway.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kgateway.spark.report.facts import TopicFacts

_OUTPUT = "report.html"


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "names",
        metavar="TOPIC",
        nargs="*",
        default=["*"],
        help="the name of a topic, or a pattern such as 'order*' (default all)",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=Path,
        default=Path(_OUTPUT),
        help=f"the page to write (default {_OUTPUT})",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace the page if it exists")
    parser.add_argument("--since", metavar="TIME", type=_time, help=f"only records since {TIMES}")
    sent = parser.add_mutually_exclusive_group()
    sent.add_argument("--sent-header", metavar="NAME", help="a header with the time when a record was sent")
    sent.add_argument(
        "--sent-field",
        metavar="NAME",
        type=_field,
        help="a field of JSON values with that time: milliseconds since 1970, or an ISO time",
    )
    add_server(parser)


def _run(options: Namespace) -> Iterator[str | Json]:
    choose_cluster(options)
    check_new_file(options.output, overwrite=options.overwrite)
    with Cluster(options.bootstrap, options.timeout) as cluster:
        wanted = matching_topics(all_topics(cluster), options.names)
        read = _extents(cluster, wanted, options.since)
        facts = _measured(options, cluster, wanted, read)
    of = ",".join(map(str, options.bootstrap))
    from kgateway.spark.report.page import page

    options.output.write_text(page(of, time.time_ns() // 1_000_000, facts))
    if options.json:
        yield {"page": str(options.output), "topics": [_json(topic) for topic in facts]}
        return
    records = sum(topic.records for topic in facts)
    yield f"{counted(len(facts), 'topic')}, {counted(records, 'record')}: {options.output}"


REPORT = spark_job(
    _add_arguments,
    _run,
    "kgateway spark report orders --output orders.html",
    if_interrupted=lambda options: "no report was written",
)


def _json(topic: "TopicFacts") -> Any:
    """
    The numbers, with keys of records as texts.
    """
    return json.loads(json.dumps(asdict(topic), default=lambda key: key.decode(errors="backslashreplace")))


def _extents(
    cluster: Cluster, wanted: Sequence[TopicDescription], since_ms: int | None
) -> dict[TopicPartition, Extent]:
    parts = [part.partition for topic in wanted for part in topic.parts]
    known = cluster.retry(partial(extents, cluster, parts))
    if since_ms is None:
        return known
    starts = cluster.retry(partial(offsets_at, cluster, parts, since_ms))
    firsts = {one: starts[one].offset if one in starts else None for one in known}
    return {one: Extent(_or(firsts[one], extent.end), extent.end) for one, extent in known.items()}


def _or(first: int | None, end: int) -> int:
    return end if first is None else min(first, end)


def _measured(
    options: Namespace, cluster: Cluster, wanted: Sequence[TopicDescription], read: Mapping[TopicPartition, Extent]
) -> "list[TopicFacts]":
    from dataclasses import replace

    from kgateway.spark.report.facts import lags
    from kgateway.spark.report.queries import SentTime, TopicQueries

    behind = lags(cluster, read)
    given = options.sent_header is not None or options.sent_field is not None
    sent = SentTime(options.sent_header, options.sent_field) if given else None
    bootstrap = ",".join(map(str, options.bootstrap))
    facts = []
    with session(options) as spark:
        for number, topic in enumerate(wanted, 1):
            own = {one.index: extent for one, extent in read.items() if one.topic == topic.name}
            step = partial(_print_step, f"{topic.name}, {number} of {len(wanted)}")
            measured = TopicQueries(spark, bootstrap, topic.name, own, step).facts(sent)
            facts.append(replace(measured, lags=behind.get(topic.name, [])))
    return facts


def _print_step(topic: str, step: str) -> None:
    print(f"{topic}: {step}", file=sys.stderr, flush=True)


def _time(text: str) -> int:
    return option_time_ms(text, "leave it out to read from the beginning")


def _field(text: str) -> str:
    if "'" in text or not text:
        raise ArgumentTypeError(f"{text!r} is not the name of a field")
    return text
