"""
Topics as tables: each one that a statement names is planned once, and stays what it was then, whatever is written,
archived, put together or removed meanwhile.
"""

import json
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pyspark.sql import DataFrame

from kgateway.spark.archive.archiving import agreed, identity_of
from kgateway.spark.archive.folder import Folder
from kgateway.spark.archive.frames import of_archive
from kgateway.spark.archive.holding import Held, held
from kgateway.spark.archive.manifest import Identity
from kgateway.spark.archive.parquet import COLUMNS
from kgateway.spark.archive.tiles import Gap
from kgateway.spark.bounds import to_json
from kgateway.spark.failures import DataLost, Unreadable, WrongOption
from kgateway.spark.formats import decoders_of
from kgateway.spark.options import READ, Options
from kgateway.spark.place import Place
from kgateway.spark.query import place_of
from kgateway.spark.sql.columns import ARCHIVE, LOG, archived, as_table, schema, typed, whole
from kgateway.spark.sql.outlines import outline
from kgateway.spark.sql.seam import Seam, seam
from kgateway.spark.topics import Topics

_SERVERS, _ISOLATION = "kafka.bootstrap.servers", "kafka.isolation.level"
_OF_THE_STATEMENT = ("subscribe", "assign", "starting", "ending", "includeheaders")  # how such options begin
_SMALLEST = "offset"  # of the columns, for a statement that needs none
_ATTEMPTS = 10  # to find an archive and a log that meet, while both move


@dataclass(frozen=True, slots=True)
class Plan:
    """
    What a table is read from.
    """

    topic: str
    options: Mapping[str, str]
    archive: Held | None
    log: Seam


class Tables:
    """
    The topics of one statement. What is held for them is let go in the end.
    """

    def __init__(
        self, spark: Any, options: Mapping[str, str], archives: Mapping[str, Folder], tell: Callable[[str], None]
    ) -> None:
        for name in options:
            if name.lower().startswith(_OF_THE_STATEMENT):
                raise WrongOption(f"{name} follows from the statement and the archives, and cannot be given here")
        place_of(Options(options, READ))  # which says what is wrong with them
        self._spark = spark
        self._given = dict(options)
        self._archives = archives
        self._tell = tell
        self._plans: dict[str, Plan] = {}
        self._holding = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._holding.close()

    def topics(self) -> list[str]:
        """
        All that there are.
        """
        with closing(place_of(Options(self._given, READ)).open(planning=True)) as logs:
            return [*logs.partitions()]

    def outline(self, topic: str, more: Mapping[str, str], folder: Path) -> DataFrame:
        """
        The table without its rows, in a folder that is its own: what a statement reads of it is what it needs.
        """
        plan = self._plan(topic, more)
        decoders = decoders_of(Options(plan.options, READ))
        return outline(self._spark, folder, LOG, decoders)

    def table(self, topic: str, more: Mapping[str, str], columns: Collection[str] = COLUMNS) -> DataFrame:
        """
        A topic, with what is to be said to the data source of this one alone. Nothing else is read than these columns.
        """
        plan = self._plan(topic, more)
        decoders = decoders_of(Options(plan.options, READ))
        names = [name for name in COLUMNS if name in columns] or [_SMALLEST]
        parts = []
        if plan.archive and plan.archive.paths:
            folder, paths = self._archives[topic], plan.archive.paths
            rows = typed(of_archive(self._spark, folder, paths, archived(names, decoders)), names, decoders)
            parts.append(as_table(whole(rows, decoders), ARCHIVE, decoders))
        if plan.log.log:
            reader = self._spark.read.format("kgateway").schema(schema(decoders, names))
            parts.append(as_table(whole(reader.options(**_of_log(plan)).load(), decoders), LOG, decoders))
        if not parts:
            parts.append(as_table(self._spark.createDataFrame([], schema(decoders)), LOG, decoders))
        return reduce(DataFrame.unionByName, parts)

    def _plan(self, topic: str, more: Mapping[str, str]) -> Plan:
        """
        What is read of a topic, which is settled when it is first asked for.
        """
        if topic not in self._plans:
            self._plans[topic] = self._planned(topic, self._given | dict(more))
            self._tell(told(self._plans[topic]))
        return self._plans[topic]

    def _planned(self, topic: str, given: Mapping[str, str]) -> Plan:
        """
        The archive is looked at first, and so the log has gone on since, and not less far. Where it has lost what was
        not archived then, that may be in the archive now.
        """
        number = None
        for _ in range(_ATTEMPTS):
            with ExitStack() as stack:
                archive = stack.enter_context(held(self._archives[topic])) if topic in self._archives else None
                options = _read_alike(given, archive.manifest.identity if archive else None)
                place = place_of(Options(options, READ))
                plan = Plan(topic, options, archive, _seam(place, topic, archive))
                if not plan.log.lost or archive is None or archive.manifest.number == number:
                    self._check_lost(plan)
                    self._holding.enter_context(stack.pop_all())
                    return plan
                number = archive.manifest.number
        raise Unreadable(f"topic {topic} loses records faster than they are archived and read")

    def _check_lost(self, plan: Plan) -> None:
        for lost in plan.log.lost:
            if Options(plan.options, READ).flag("failOnDataLoss", True):
                raise DataLost(lost)
            self._tell(lost)
        if plan.archive:
            gaps = [tile for tile in plan.archive.manifest.tiles if isinstance(tile, Gap)]
            for gap in gaps:
                self._tell(f"{plan.topic}-{gap.partition}: {gap.range} had gone from the log before they were archived")


def told(plan: Plan) -> str:
    """
    What a table is made of, in words.
    """
    of_log = f"{sum(map(len, plan.log.log)):,} offsets of the log"
    if plan.archive is None:
        return f"{plan.topic}: {of_log}"
    records = sum(file.count for file in plan.archive.manifest.files)
    return f"{plan.topic}: {records:,} records of the archive, then {of_log}"


def _read_alike(given: Mapping[str, str], archived: Identity | None) -> dict[str, str]:
    """
    The options, with the log read as the archive was; without one, what is committed of it, where that can be known.
    """
    options = {name.lower(): value for name, value in given.items()}
    if archived and archived.isolation == "read_committed" and _SERVERS not in options:
        raise Unreadable(
            f"the archive of topic {archived.topic} has what is committed, and the log can be read so only with a "
            "server beside it that says what that is: name one"
        )
    if _SERVERS in options:
        options.setdefault(_ISOLATION, archived.isolation if archived else "read_committed")
    return options


def _seam(place: Place, topic: str, archive: Held | None) -> Seam:
    there = identity_of(place, topic)
    if archive:
        agreed(archive.manifest.identity, there)
    with closing(place.open(planning=True)) as logs:
        extents = logs.extents(Topics(names=(topic,)).partitions(logs))
    return seam(archive.manifest.ends if archive else {}, extents, may_lag=place.servers is None)


def _of_log(plan: Plan) -> dict[str, str]:
    """
    What is said to the data source: these offsets, and no others.
    """
    starts = {one.partition: one.start for one in plan.log.log}
    ends = {one.partition: one.end for one in plan.log.log}
    partitions = {plan.topic: [one.partition.index for one in plan.log.log]}
    return {
        **plan.options,
        "assign": json.dumps(partitions),
        "startingOffsets": json.dumps(to_json(starts)),
        "endingOffsets": json.dumps(to_json(ends)),
        "includeHeaders": "true",
    }
