"""
`kgateway spark compact`: the latest value of each key, as a table of its own, or as what stays in an archive.
"""

import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgateway.cli.common.errors import UsageError
from kgateway.cli.common.json_document import Json
from kgateway.cli.common.output import Column, size, table
from kgateway.cli.common.progress import Progress
from kgateway.cli.common.times import TIMES, ago_ms, option_time_ms
from kgateway.cli.common.values import positive
from kgateway.cli.spark.archive import add_codec, archive_json, location_of, summary
from kgateway.cli.spark.locations import IN_A_FILER, LOCATION, archive_of, archived_topics, location
from kgateway.cli.spark.session import add_topics, session, spark_job, stages
from kgateway.plurals import counted

if TYPE_CHECKING:
    from kgateway.spark.archive.manifest import Manifest
    from kgateway.spark.compact.latest_table import TableResult
    from kgateway.spark.compact.table_snapshots import Snapshot

_COLUMNS = tuple(Column(heading, 40, is_number=True) for heading in ("partition", "first", "last", "latest values"))
_TASK_RECORDS = 1 << 20
_KEY, _TIME = "key", "time"


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("topics", metavar="TOPIC", nargs="*", help="topics to compact (default all that have archives)")
    parser.add_argument(
        "--in",
        metavar=LOCATION,
        dest="folder",
        type=location,
        help=f"the folder of the archives, {IN_A_FILER} (default: the topics themselves are read)",
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--output",
        metavar="FOLDER",
        type=Path,
        help="the folder of the tables of latest values; each topic gets a folder in it",
    )
    what.add_argument(
        "--in-place",
        choices=(_KEY, _TIME),
        help="remove from the archives records that a later record of their key has replaced, or old records",
    )
    until = parser.add_mutually_exclusive_group()
    until.add_argument(
        "--older-than", metavar="AGE", type=_before, dest="before_ms", help="only records that are older, such as 7d"
    )
    until.add_argument(
        "--before", metavar="TIME", type=_time, dest="before_ms", help=f"only records from before {TIMES}"
    )
    parser.add_argument(
        "--tombstones-older-than",
        metavar="AGE",
        type=_before,
        dest="tombstones_before_ms",
        help="in place: also remove tombstones that are older, such as 1d (default: they stay)",
    )
    parser.add_argument("--keep-tombstones", action="store_true", help="in tables: keep keys without a value")
    parser.add_argument(
        "--keep-keyless", action="store_true", help="keep records without a key (default: they are refused)"
    )
    parser.add_argument(
        "--task-records",
        metavar="COUNT",
        type=positive,
        default=_TASK_RECORDS,
        help=f"the number of offsets per Spark task (default {_TASK_RECORDS})",
    )
    add_codec(parser)
    add_topics(parser)


def _run(options: Namespace) -> Iterator[str | Json]:
    _check(options)
    topics = dict.fromkeys(options.topics or archived_topics(options, options.folder))
    if not options.folder:
        location_of(options).check_servers()
    job, done = _compacted if options.in_place else _tabled, []
    with session(options) as spark:
        for topic in topics:
            lines, result = job(options, spark, topic)
            done.append(result)
            if not options.json:
                yield from lines
    if options.json:
        yield {"archives" if options.in_place else "tables": done}


COMPACT = spark_job(
    _add_arguments,
    _run,
    "kgateway spark compact orders --in archive --output latest",
    if_interrupted=lambda options: "tables and archives are intact; run the same command again to continue",
)


def _check(options: Namespace) -> None:
    wrong = [
        (not options.folder and not options.topics, "name topics, or the folder of archives with --in"),
        (options.in_place and not options.folder, "--in-place changes archives: name their folder with --in"),
        (
            options.in_place == _TIME and options.before_ms is None,
            "--in-place time needs --older-than AGE or --before TIME",
        ),
        (
            options.output and options.before_ms is not None,
            "--older-than and --before need --in-place: a table has the latest values",
        ),
        (
            options.in_place != _KEY and options.tombstones_before_ms is not None,
            "--tombstones-older-than needs --in-place key",
        ),
        (options.in_place and options.keep_tombstones, "--keep-tombstones needs --output"),
        (options.in_place == _TIME and options.keep_keyless, "--keep-keyless is for compaction by key, not by time"),
    ]
    for is_wrong, words in wrong:
        if is_wrong:
            raise UsageError(words)


def _tabled(options: Namespace, spark: Any, topic: str) -> tuple[list[str], Any]:
    from kgateway.spark.compact.latest_table import LatestTable, table_of_archive
    from kgateway.spark.compact.table_snapshots import Snapshots
    from kgateway.spark.compact.table_sources import LogSource

    began = time.monotonic()
    snapshots = Snapshots((options.output / topic).absolute())
    table = LatestTable(snapshots, options.keep_tombstones, options.keep_keyless, options.codec)
    with stages(spark, f"compacting {topic}"):
        if options.folder:
            made = table_of_archive(table, spark, archive_of(options, options.folder, topic))
        else:
            made = table.make(spark, LogSource(spark, location_of(options), topic, options.task_records))
    result = _table_json(made.snapshot) | {"read": made.read or 0}
    return [*_table_lines(result), _what_was_made(made, time.monotonic() - began)], result


def _table_json(snapshot: "Snapshot") -> dict[str, Any]:
    return {
        "topic": snapshot.state.identity.topic,
        "snapshot": snapshot.number,
        "partitions": [
            {"partition": index, "first": start, "last": end - 1, "records": snapshot.counts.get(index, 0)}
            for index, (start, end) in snapshot.state.extents.items()
        ],
    }


def _table_lines(result: dict[str, Any]) -> list[str]:
    rows = [
        [str(one["partition"]), *(f"{one[name]:,}" for name in ("first", "last", "records"))]
        for one in result["partitions"]
    ]
    return [f"topic {result['topic']}", *table(_COLUMNS, rows)]


def _what_was_made(made: "TableResult", seconds: float) -> str:
    number, kept = made.snapshot.number, sum(made.snapshot.counts.values())
    if made.read is None:
        return f"there are no new records: snapshot {number} remains current, with {counted(kept, 'record')}"
    after = f" after snapshot {made.before.number}" if made.before else ""
    return f"snapshot {number}{after}: {kept:,} of {counted(made.read, 'record', form=',')} kept in {seconds:.1f} s"


def _compacted(options: Namespace, spark: Any, topic: str) -> tuple[list[str], Any]:
    from kgateway.spark.compact.archive_compaction import Compaction, CompactionGoal

    began = time.monotonic()
    aim = CompactionGoal(
        by_key=options.in_place == _KEY,
        before_ms=options.before_ms,
        tombstones_before_ms=options.tombstones_before_ms,
        keep_keyless=options.keep_keyless,
    )
    job = Compaction(spark, archive_of(options, options.folder, topic), aim, options.codec)
    before = job.manifest
    with Progress(f"reading {topic}", "files") as progress:
        for step in job.look():
            progress.show(*step)
    with stages(spark, f"comparing keys of {topic}"):
        job.plan()
    with Progress(f"compacting {topic}", "files") as progress:
        for step in job.write():
            progress.show(*step)
    removed = _what_was_removed(before, job.manifest, time.monotonic() - began)
    return [*summary(job.manifest), removed], archive_json(job.manifest)


def _what_was_removed(before: "Manifest", after: "Manifest", seconds: float) -> str:
    records, of = (
        sum(getattr(file, name) for file in before.files) - sum(getattr(file, name) for file in after.files)
        for name in ("count", "bytes")
    )
    removed = counted(records, "record", form=",")
    return f"{removed} removed and {size(max(of, 0))} freed in {seconds:.1f} s"


def _before(text: str) -> int:
    try:
        return ago_ms(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a duration such as 12h or 7d") from None


_time = partial(option_time_ms, instead="Kafka has no older timestamps")
