"""
Topics as tables. Each topic that a statement names is planned once, and does not change afterwards, whatever is
written, archived, merged or deleted meanwhile.

Each offset is read either from the archive, as far as its manifest goes, or from the log behind it, up to where the log
ends when the query begins.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import reduce
from pathlib import Path, PurePath
from types import TracebackType
from typing import Any, Self

from pyspark.sql import DataFrame

from kgateway.client.offsets import Extent
from kgateway.plurals import counted
from kgateway.spark.archive.folder import Folder, archives_in, is_archive
from kgateway.spark.archive.frames import archive_frame
from kgateway.spark.archive.job import identity_of, same_identity
from kgateway.spark.archive.manifest import Gap, Identity
from kgateway.spark.archive.parquet import COLUMNS
from kgateway.spark.archive.reader_lease import LeasedArchive, leased
from kgateway.spark.decoders.columns import decoders_of
from kgateway.spark.errors import DataLost, Unreadable, WrongOption
from kgateway.spark.http.client import Access, url_path
from kgateway.spark.logs.offset_range import OffsetRange
from kgateway.spark.options import READ, Options
from kgateway.spark.query import LogLocation, location_of
from kgateway.spark.readers.offset_bounds import to_json
from kgateway.spark.sql.columns import ARCHIVE, LOG, archived, as_table, outline, schema, typed, whole
from kgateway.topic_partition import TopicPartition

_SERVERS, _ISOLATION = "kafka.bootstrap.servers", "kafka.isolation.level"
_OF_THE_STATEMENT = (
    "subscribe",
    "assign",
    "starting",
    "ending",
    "includeheaders",
)  # prefixes of options that the statement decides
_SMALLEST = "offset"  # the smallest column, for a statement that needs none
_ATTEMPTS = 10  # to find an archive and a log without a hole between them


@dataclass(frozen=True, slots=True)
class Seam:
    """
    The ranges to read from the log, and what is in neither archive nor log, in words.
    """

    log: tuple[OffsetRange, ...]
    lost: tuple[str, ...]


def seam(ends: Mapping[int, int], extents: Mapping[TopicPartition, Extent], *, may_lag: bool = False) -> Seam:
    """
    The part of the log behind these ends of an archive. Without a server, the archive may know more of the log than its
    files tell.
    """
    gone = ends.keys() - {partition.index for partition in extents}
    if gone:
        raise Unreadable(f"the archive has partition {min(gone)}, but the topic does not")
    log, lost = [], []
    for partition, extent in sorted(extents.items()):
        start = ends.get(partition.index, extent.start)
        if start < extent.start:
            lost.append(
                f"{partition} is archived up to offset {start - 1}, but its log begins with {extent.start} now: "
                f"offsets {start} to {extent.start - 1} are in neither"
            )
        if start > extent.end and not may_lag:
            lost.append(
                f"{partition} ends at offset {extent.end}, but the archive has it up to {start - 1}: the topic was "
                "recreated, or its log has lost its end"
            )
        behind = OffsetRange(partition, max(start, extent.start), extent.end)
        if len(behind):
            log.append(behind)
    return Seam(tuple(log), tuple(lost))


@dataclass(frozen=True, slots=True)
class TablePlan:
    topic: str
    options: Mapping[str, str]
    archive: LeasedArchive | None
    log: Seam


class Tables:
    """
    The topics of one statement. Their archives are kept readable until the end.
    """

    def __init__(
        self, spark: Any, options: Mapping[str, str], archives: Mapping[str, Folder], report: Callable[[str], None]
    ) -> None:
        for name in options:
            if name.lower().startswith(_OF_THE_STATEMENT):
                raise WrongOption(f"{name} is derived from the statement and the archives, and cannot be set here")
        location_of(Options(options, READ))  # raises WrongOption where they are wrong
        self._spark = spark
        self._given = dict(options)
        self._archives = archives
        self._report = report
        self._plans: dict[str, TablePlan] = {}
        self._holding = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._holding.close()

    def topics(self) -> list[str]:
        location = location_of(Options(self._given, READ))
        location.check_servers()
        with closing(location.open(planning=True)) as logs:
            return [*logs.partitions()]

    def outline(self, topic: str, more: Mapping[str, str], folder: Path) -> DataFrame:
        """
        The table without rows, in a folder of its own, to find the columns that a statement reads.
        """
        plan = self._plan(topic, more)
        decoders = decoders_of(Options(plan.options, READ))
        return outline(self._spark, folder, LOG, decoders)

    def table(self, topic: str, more: Mapping[str, str], columns: Collection[str] = COLUMNS) -> DataFrame:
        """
        A topic as a table, with options for its data source. Only these columns are read.
        """
        plan = self._plan(topic, more)
        decoders = decoders_of(Options(plan.options, READ))
        names = [name for name in COLUMNS if name in columns] or [_SMALLEST]
        parts = []
        if plan.archive and plan.archive.paths:
            folder, paths = self._archives[topic], plan.archive.paths
            rows = typed(archive_frame(self._spark, folder, paths, archived(names, decoders)), names, decoders)
            parts.append(as_table(whole(rows, decoders), ARCHIVE, decoders))
        if plan.log.log:
            reader = self._spark.read.format("kgateway").schema(schema(decoders, names))
            parts.append(as_table(whole(reader.options(**_of_log(plan)).load(), decoders), LOG, decoders))
        if not parts:
            parts.append(as_table(self._spark.createDataFrame([], schema(decoders)), LOG, decoders))
        return reduce(DataFrame.unionByName, parts)

    def _plan(self, topic: str, more: Mapping[str, str]) -> TablePlan:
        if topic not in self._plans:
            self._plans[topic] = self._planned(topic, self._given | dict(more))
            self._report(description(self._plans[topic]))
        return self._plans[topic]

    def _planned(self, topic: str, given: Mapping[str, str]) -> TablePlan:
        """
        The archive is looked at first, so the log has everything behind it, unless it has just been archived and
        deleted: then both are looked at again.
        """
        number = None
        for _ in range(_ATTEMPTS):
            with ExitStack() as stack:
                archive = stack.enter_context(leased(self._archives[topic])) if topic in self._archives else None
                options = _read_alike(given, archive.manifest.identity if archive else None)
                location = location_of(Options(options, READ))
                plan = TablePlan(topic, options, archive, _seam(location, topic, archive))
                if not plan.log.lost or archive is None or archive.manifest.number == number:
                    self._check_lost(plan)
                    self._holding.enter_context(stack.pop_all())
                    return plan
                number = archive.manifest.number
        raise Unreadable(f"topic {topic} loses records faster than they are archived and read")

    def _check_lost(self, plan: TablePlan) -> None:
        for lost in plan.log.lost:
            if Options(plan.options, READ).flag("failOnDataLoss", True):
                raise DataLost(lost)
            self._report(lost)
        if plan.archive:
            gaps = [tile for tile in plan.archive.manifest.tiles if isinstance(tile, Gap)]
            for gap in gaps:
                self._report(
                    f"{plan.topic}-{gap.partition}: {gap.range} had been deleted from the log before they were archived"
                )


def description(plan: TablePlan) -> str:
    of_log = f"{counted(sum(map(len, plan.log.log)), 'offset', form=',')} in the log"
    if plan.archive is None:
        return f"{plan.topic}: {of_log}"
    records = sum(file.count for file in plan.archive.manifest.files)
    return f"{plan.topic}: {counted(records, 'record', form=',')} in the archive, then {of_log}"


def _read_alike(given: Mapping[str, str], archived: Identity | None) -> dict[str, str]:
    """
    The options, so that the log is read like the archive; without an archive only committed records, where a server can
    tell.
    """
    options = {name.lower(): value for name, value in given.items()}
    if archived and archived.isolation == "read_committed" and _SERVERS not in options:
        raise Unreadable(
            f"the archive of topic {archived.topic} has only committed records, and the log can only be read that way "
            "with a server: name one"
        )
    if _SERVERS in options:
        options.setdefault(_ISOLATION, archived.isolation if archived else "read_committed")
    return options


def _seam(location: LogLocation, topic: str, archive: LeasedArchive | None) -> Seam:
    there = identity_of(location, topic)
    if archive:
        same_identity(archive.manifest.identity, there)
    ends = archive.manifest.ends if archive else {}
    return seam(ends, location.extents(topic), may_lag=location.servers is None)


def _of_log(plan: TablePlan) -> dict[str, str]:
    """
    The options of the data source for exactly these offsets.
    """
    starts = {offset_range.partition: offset_range.start for offset_range in plan.log.log}
    ends = {offset_range.partition: offset_range.end for offset_range in plan.log.log}
    partitions = {plan.topic: [offset_range.partition.index for offset_range in plan.log.log]}
    return {
        **plan.options,
        "assign": json.dumps(partitions),
        "startingOffsets": json.dumps(to_json(starts)),
        "endingOffsets": json.dumps(to_json(ends)),
        "includeHeaders": "true",
    }


def archives_of(given: Iterable[str], access: Access) -> dict[str, Folder]:
    """
    The archives by topic, from TOPIC=FOLDER, a folder that is an archive, or a folder that has some.
    """
    found: dict[str, Folder] = {}
    for text in given:
        for topic, folder in _named(text, access):
            known = found.setdefault(topic, folder)
            if known != folder:
                raise WrongOption(
                    f"there are two archives of topic {topic}, {known.path} and {folder.path}: name only one of them"
                )
    return found


def _named(text: str, access: Access) -> list[tuple[str, Folder]]:
    topic, equals, path = text.partition("=")
    if equals and "/" not in topic and not Path(text).exists():
        folder = Folder(_path(path), access)
        if not is_archive(folder):
            raise WrongOption(f"there is no archive in {path}")
        return [(topic, folder)]
    folder = Folder(_path(text), access)
    if is_archive(folder):
        return [_with_topic(folder)]
    inside = archives_in(folder.path, access)
    if not inside:
        raise WrongOption(f"there is no archive in {text}")
    return [_with_topic(one) for one in inside]


def _path(text: str) -> PurePath:
    if "://" not in text:
        return Path(text).absolute()
    try:
        return url_path(text)
    except ValueError as error:
        raise WrongOption(f"there is no archive in {text}: {error}") from None


def _with_topic(folder: Folder) -> tuple[str, Folder]:
    manifest = folder.manifests.newest()
    return (manifest.identity.topic if manifest else folder.path.name), folder
