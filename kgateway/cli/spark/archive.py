"""
`kgateway spark archive`: topics into folders of Parquet files, with proof of what is in them.
"""

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from kgateway.cli.common.interrupts import Interrupts
from kgateway.cli.common.json_document import Json
from kgateway.cli.common.output import Column, size, table
from kgateway.cli.common.progress import Progress
from kgateway.cli.common.values import positive
from kgateway.cli.spark.locations import IN_A_FILER, LOCATION, archive_of, location
from kgateway.cli.spark.session import add_topics, session, source_options, spark_job
from kgateway.plurals import counted

if TYPE_CHECKING:
    from kgateway.spark.archive.job import ArchiveJob
    from kgateway.spark.archive.manifest import Manifest
    from kgateway.spark.archive.parquet import Target
    from kgateway.spark.query import LogLocation

_COLUMNS = tuple(
    Column(heading, 40, is_number=True)
    for heading in ("partition", "first", "last", "records", "files", "size", "lost", "no records", "removed")
)
_SUMMED = ("bytes", "compacted", "markers", "aborted", "removed")
_CODECS = ("zstd", "snappy", "gzip", "none")
_FILE_MIB = 256
_EVERY_S = 10
_TASK_RECORDS = 1 << 20


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("topics", metavar="TOPIC", nargs="+", help="topics to archive; each gets a folder of its name")
    parser.add_argument(
        "--into", metavar=LOCATION, type=location, required=True, help=f"the folder of the archives, {IN_A_FILER}"
    )
    parser.add_argument(
        "--once", action="store_true", help="exit once everything that was there at the start is archived"
    )
    parser.add_argument(
        "--every",
        metavar="SECONDS",
        type=positive,
        default=_EVERY_S,
        help=f"the pause between rounds without --once (default {_EVERY_S})",
    )
    parser.add_argument(
        "--file-mib",
        metavar="MIB",
        type=positive,
        default=_FILE_MIB,
        help=f"the size at which the next file begins (default {_FILE_MIB})",
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


def add_codec(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--codec", choices=_CODECS, default=_CODECS[0], help=f"how files are compressed (default {_CODECS[0]})"
    )


def _run(options: Namespace) -> Iterator[str | Json]:
    logs, targets = _targets(options)
    from kgateway.spark.archive.job import ArchiveJob

    with session(options) as spark, Interrupts() as interrupts:
        jobs = [ArchiveJob(spark, logs, target, options.task_records) for target in targets]
        before, began = [job.manifest for job in jobs], time.monotonic()
        while True:
            for job in jobs:
                _archive(job, interrupts)
            if options.once or interrupts.came:
                break
            interrupts.rest(options.every)
    if options.json:
        yield {"archives": [archive_json(job.manifest) for job in jobs]}
        return
    for job, was in zip(jobs, before, strict=True):
        yield from summary(job.manifest)
        yield _what_was_done(was, job.manifest, time.monotonic() - began)


ARCHIVE = spark_job(
    _add_arguments,
    _run,
    "kgateway spark archive orders --into archive --once",
    if_interrupted=lambda options: "what was archived is kept; run the same command again to continue",
)


def _targets(options: Namespace) -> "tuple[LogLocation, list[Target]]":
    from kgateway.spark.archive.job import identity_of
    from kgateway.spark.archive.parquet import Target

    logs, topics = location_of(options), dict.fromkeys(options.topics)
    logs.check_servers()
    return logs, [
        Target(
            archive_of(options, options.into, topic), identity_of(logs, topic), options.file_mib << 20, options.codec
        )
        for topic in topics
    ]


def location_of(options: Namespace) -> "LogLocation":
    """
    The location of the topics' log. Without a server the outcomes of transactions are unknown.
    """
    from kgateway.spark.options import READ, Options
    from kgateway.spark.query import location_of

    given = source_options(options)
    if "kafka.bootstrap.servers" in given:
        given.setdefault("kafka.isolation.level", "read_committed")
    return location_of(Options(given, READ))


def _archive(job: "ArchiveJob", interrupts: Interrupts) -> None:
    extents = job.extents()
    with Progress(f"archiving {job.manifest.identity.topic}", "offsets") as progress:
        total = None
        for left in job.rounds(extents):
            total = left if total is None else total
            progress.show(total - left, total)
            if interrupts.came:
                return
    job.merge()


def summary(manifest: "Manifest") -> list[str]:
    rows = [
        [
            str(one["partition"]),
            *(f"{one[name]:,}" for name in ("first", "last", "records", "files")),
            size(one["bytes"]),
            f"{one['gone']:,}",
            f"{one['compacted'] + one['markers'] + one['aborted']:,}",
            f"{one['removed']:,}",
        ]
        for one in archive_json(manifest)["partitions"]
    ]
    return [f"topic {manifest.identity.topic}", *table(_COLUMNS, rows)]


def archive_json(manifest: "Manifest") -> dict[str, Any]:
    return {"topic": manifest.identity.topic, "partitions": [*map(partial(_partition, manifest), manifest.ends)]}


def _partition(manifest: "Manifest", index: int) -> dict[str, Any]:
    tiles = manifest.of(index)
    files = [file for file in manifest.files if file.partition == index]
    gone = sum(tile.last - tile.first + 1 for tile in tiles if tile not in files)
    summed = {name: sum(getattr(file, name) for file in files) for name in _SUMMED}
    return {
        "partition": index,
        "first": tiles[0].first,
        "last": tiles[-1].last,
        "records": sum(file.count for file in files),
        "files": len(files),
        "gone": gone,
        **summed,
    }


def _what_was_done(before: "Manifest", after: "Manifest", seconds: float) -> str:
    records, raw = (
        sum(getattr(file, name) for file in after.files) - sum(getattr(file, name) for file in before.files)
        for name in ("count", "raw_bytes")
    )
    return f"{counted(records, 'record', form=',')} ({size(raw)}) archived in {seconds:.1f} s: {size(raw / seconds)}/s"
