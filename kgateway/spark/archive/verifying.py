"""
Whether an archive is what it says: each offset is in one file, each file has what was written, nothing else is there,
and the log agrees.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from kgateway.client.offsets import Extent, Partition
from kgateway.spark.archive.archiving import agreed, identity_of
from kgateway.spark.archive.checking import Check, Checked, Finding
from kgateway.spark.archive.folder import Folder
from kgateway.spark.archive.manifest import Damaged, Manifest
from kgateway.spark.archive.running import run_all
from kgateway.spark.archive.tiles import Gap, Tile, holes
from kgateway.spark.compact.proving import Proof
from kgateway.spark.failures import Unreadable
from kgateway.spark.place import Place
from kgateway.spark.topics import Topics

_TASKS_A_CORE = 4  # that are given to Spark at once


@dataclass(frozen=True, slots=True)
class Outcome:
    """
    What was found.
    """

    manifest: Manifest | None
    findings: Sequence[Finding]
    compared: int = 0
    alone: int = 0
    proven: int = 0  # records that compaction has removed, and the log shows that it was right

    @property
    def faults(self) -> int:
        """
        How many of the findings are faults.
        """
        return sum(finding.is_fault for finding in self.findings)


class Verifying:
    """
    Looks at the archive of one topic; at the log as well, unless there is no place where it is.
    """

    def __init__(self, spark: Any, folder: Folder, topic: str, place: Place | None) -> None:
        self._spark = spark
        self._folder = folder
        self._topic = topic
        self._place = place

    def steps(self) -> Iterator[tuple[int, int] | Outcome]:
        """
        How many files are done, of how many; at last the outcome.
        """
        try:
            manifest = self._folder.manifests.newest()
        except Damaged as error:
            yield Outcome(None, [Finding("manifest", str(error))])
            return
        if manifest is None:
            yield Outcome(None, [Finding("manifest", f"there is no archive in {self._folder.path}: no manifest")])
            return
        findings = [*self._of_folder(manifest), *_of_tiles(manifest)]
        extents = self._extents(manifest, findings)
        findings += _of_extents(manifest, extents)
        checked = list[Checked]()
        checks = self._checks(manifest, extents)
        for some in self._chunks(checks):
            yield len(checked), len(checks)
            checked += run_all(self._spark, some)
        for one in checked:
            findings += one.findings
        proven = self._proven(manifest, extents, findings)
        yield Outcome(
            manifest, findings, sum(one.compared for one in checked), sum(one.alone for one in checked), proven
        )

    def _proven(self, manifest: Manifest, extents: Mapping[int, Extent], findings: list[Finding]) -> int:
        """
        How many of the records that compaction has removed were rightly removed.
        """
        if not (self._place and extents and any(file.removed for file in manifest.files)):
            return 0
        if any(finding.is_fault for finding in findings):
            reason = "what compaction removed is looked at when nothing else is wrong"
            findings.append(Finding(manifest.identity.topic, reason, is_fault=False))
            return 0
        proven, wrong = Proof(self._spark, self._folder, manifest, self._place, extents).run()
        findings += wrong
        return proven

    def _chunks(self, checks: Sequence[Check]) -> Iterator[Sequence[Check]]:
        size = int(self._spark.sparkContext.defaultParallelism) * _TASKS_A_CORE
        for at in range(0, len(checks), size):
            yield checks[at : at + size]

    def _checks(self, manifest: Manifest, extents: Mapping[int, Extent]) -> list[Check]:
        place = self._place if extents else None
        return [
            Check(self._folder, manifest.identity, file, place, extents.get(file.partition)) for file in manifest.files
        ]

    def _extents(self, manifest: Manifest, findings: list[Finding]) -> dict[int, Extent]:
        """
        What the log has; nothing where it is not that of the archive any more.
        """
        if self._place is None:
            return {}
        there = identity_of(self._place, self._topic)
        try:
            agreed(manifest.identity, there)
        except Unreadable as error:
            findings.append(Finding("log", str(error)))
            return {}
        with closing(self._place.open(planning=True)) as logs:
            found = logs.extents(Topics(names=(self._topic,)).partitions(logs))
        return {partition.index: extent for partition, extent in found.items()}

    def _of_folder(self, manifest: Manifest) -> list[Finding]:
        found = []
        for name in self._folder.strangers(manifest):
            if name in manifest.leaving:
                reason = "another file has taken its place, and a job was killed before it was removed: archive again"
            else:
                reason = "no file of the archive, and readers of the folder may take it for one"
            found.append(Finding(name, reason))
        staged = self._folder.staged_names()
        waiting = {file.name for file in manifest.files}.intersection(staged)
        for name in sorted(waiting):
            reason = "part of the archive, and not where readers of the folder look: archive again"
            found.append(Finding(name, reason, is_fault=False))
        if len(staged) > len(waiting):
            reason = f"{len(staged) - len(waiting)} files are being written, or were when a job was killed"
            found.append(Finding("_staged", reason, is_fault=False))
        return found


def _of_tiles(manifest: Manifest) -> Iterator[Finding]:
    for partition in manifest.ends:
        place = f"{manifest.identity.topic}-{partition}"
        for one, other in holes(list[Tile](manifest.of(partition))):
            is_hole = other.first > one.last
            first, last = (one.last + 1, other.first - 1) if is_hole else (other.first, one.last)
            yield Finding(place, f"offsets {first} to {last} are in {'no file' if is_hole else 'two files'}")
        for tile in manifest.of(partition):
            if isinstance(tile, Gap):
                yield Finding(place, f"{tile.range} had gone from the log before they were archived", is_fault=False)


def _of_extents(manifest: Manifest, extents: Mapping[int, Extent]) -> Iterator[Finding]:
    """
    Where the log and the archive do not begin and end alike.
    """
    for index, (start, end) in sorted(extents.items()):
        place = str(Partition(manifest.identity.topic, index))
        archived = manifest.ends.get(index)
        if archived is None:
            if end > start:
                yield Finding(place, f"offsets {start} to {end - 1} are not archived yet", is_fault=False)
            continue
        first = manifest.of(index)[0].first
        if start < min(first, end):
            yield Finding(place, f"the archive begins with offset {first}, and the log with {start}")
        if end < archived:
            yield Finding(place, f"the log ends at offset {end}, and the archive has it up to {archived - 1}")
        if end > archived:
            yield Finding(place, f"offsets {archived} to {end - 1} are not archived yet", is_fault=False)
        for tile in manifest.of(index):
            if isinstance(tile, Gap) and tile.last >= start:
                yield Finding(place, f"the log has some of {tile.range}, of which the archive says they were gone")
    missing = manifest.ends.keys() - extents.keys() if extents else set()
    for index in sorted(missing):
        yield Finding(str(Partition(manifest.identity.topic, index)), "the log has no such partition")
