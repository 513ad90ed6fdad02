"""
Checks a data folder: what says whose it is and which topics there are, each partition, and whether these fit together.
"""

import json
import re
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from kgateway.broker.log.checking_partition import CheckedPartition
from kgateway.broker.log.checkpoints import SETTLED, SYNCED, Checkpoints, Offsets, Place, read_offsets
from kgateway.broker.log.config_file import CONFIGS, ConfigFile
from kgateway.broker.log.disk import TEMPORARY
from kgateway.broker.log.findings import Finding, Steps, Survey
from kgateway.broker.log.folder import CLEAN, this_boot
from kgateway.broker.log.folder_error import FolderError
from kgateway.broker.log.folder_meta import EMPTY, META, START, read_meta
from kgateway.broker.log.kept_offsets import CLEANED_OFFSETS, LOG_STARTS
from kgateway.broker.log.partition_folder import DELETED, METADATA, STRAY, topic_id_of
from kgateway.broker.log.producer_ids import PRODUCER_IDS, ProducerIds
from kgateway.broker.log.start_file import LastEnd, read_start
from kgateway.broker.log.topic_journal import TOPICS, StoredTopic, TopicJournal
from kgateway.cluster.partition import EARLIEST_OFFSET

_PARTITION = re.compile(r"(.+)-([0-9]{1,10})")
_FILES = {META, START, CLEAN, TOPICS, CONFIGS, PRODUCER_IDS, SYNCED, SETTLED, LOG_STARTS, CLEANED_OFFSETS} | EMPTY
_NONE = b"0\n0\n"  # checkpoints of no partition
_NOTHING = "nothing has to be done"
_UNNEEDED = "remove it if nobody needs it"


class CheckedFolder:
    """
    A data folder of ours, as far as its name tells.
    """

    def __init__(self, survey: Survey, path: Path, names: dict[str, int]) -> None:
        self._survey = survey
        self._path = path
        self._names = names
        self.partitions = [name for name in sorted(names) if _PARTITION.fullmatch(name) and (path / name).is_dir()]
        self._topics: dict[str, StoredTopic] = {}
        self._changes = b""  # of topics, as they stand in the journal
        self._ends: dict[Place, int] = {}
        self._starts: Offsets = {}
        self._cleaned: Offsets = {}

    def steps(self, only: Collection[str]) -> Steps:
        """
        Look through the partitions that are wanted, and all that is said of them elsewhere.
        """
        survey = self._survey
        yield from survey.reading(self._path / META, self._meta())
        yield from survey.reading(self._path / START, self._start())
        yield from survey.reading(self._path / TOPICS, self._journal())
        yield from survey.reading(self._path / CONFIGS, self._configs())
        checkpoints = Checkpoints(self._path, survey.disk, trust_settled=True, clean=survey.was_clean)
        for name, offsets in ((SYNCED, checkpoints.synced), (SETTLED, checkpoints.settled)):
            yield from survey.reading(self._path / name, self._checkpoints(name, offsets))
        if LOG_STARTS in self._names:
            yield from survey.reading(self._path / LOG_STARTS, self._log_starts())
        if CLEANED_OFFSETS in self._names:
            yield from survey.reading(self._path / CLEANED_OFFSETS, self._cleaned_offsets())
        yield from self._others()
        checked = dict[str, CheckedPartition]()
        for name in [name for name in self.partitions if name in only]:
            with suppress(FileNotFoundError):  # its topic was deleted meanwhile
                checked[name] = self._partition(name)
        survey.tally.bytes_in_all = survey.tally.bytes + sum(partition.size for partition in checked.values())
        for name, partition in checked.items():
            yield from survey.reading(self._path / name, self._belongs(name))
            yield from survey.reading(self._path / name, partition.steps())
            self._ends[_place(name)] = partition.reached.next_offset
        yield from self._ahead(LOG_STARTS, self._starts)
        yield from self._ahead(CLEANED_OFFSETS, self._cleaned)
        yield from self._ahead(SYNCED, checkpoints.synced)
        if self._settled_counts():
            yield from self._ahead(SETTLED, checkpoints.settled)
        yield from survey.reading(self._path / PRODUCER_IDS, self._producer_ids())

    def _partition(self, name: str) -> CheckedPartition:
        topic = self._topics.get(_place(name)[0])
        compacted = topic is not None and "compact" in topic.config.get("cleanup.policy", "")
        log_start = self._starts.get(_place(name), EARLIEST_OFFSET)
        return CheckedPartition(self._survey, self._path / name, log_start, may_have_gaps=compacted)

    def _meta(self) -> Steps:
        self._survey.read(self._path / META)
        try:
            read_meta(self._path, self._survey.disk)
        except FolderError as error:
            yield _told(self._path / META, error)

    def _start(self) -> Steps:
        self._survey.read(self._path / START)
        try:
            read_start(self._path / START, self._survey.disk)
        except FolderError as error:
            yield _told(self._path / START, error)

    def _journal(self) -> Steps:
        path = self._path / TOPICS
        if TOPICS not in self._names:
            if self.partitions:
                yield Finding(path, "it is missing, and so are all topics for clients", "bring it back from a copy")
            return
        data = self._survey.read(path)
        try:
            journal = TopicJournal.open(path, self._survey.disk, self._last_end())
        except FolderError as error:
            yield _told(path, error)
            return
        journal.close()
        self._topics = {topic.name: topic for topic in journal.topics.values()}
        self._changes = data
        if journal.cut_bytes and not self._survey.in_use:
            what = f"the last {journal.cut_bytes} bytes are of a change that was not finished"
            yield Finding(path, what, f"{_NOTHING}: it was not acknowledged", is_fault=False)

    def _configs(self) -> Steps:
        path = self._path / CONFIGS
        if CONFIGS in self._names:
            self._survey.read(path)
            try:
                ConfigFile.open(path, self._survey.disk)
            except FolderError as error:
                yield _told(path, error)

    def _checkpoints(self, name: str, offsets: dict[Place, int]) -> Steps:
        data = self._survey.read(self._path / name)
        if not offsets and data != _NONE:
            remedy = f"{_NOTHING}: the next start takes longer, for it looks through more"
            yield Finding(self._path / name, "it is damaged", remedy)
        for place, offset in offsets.items():
            if f"{place[0]}-{place[1]}" not in self._names and offset:
                what = f"it knows partition {place[0]}-{place[1]} up to offset {offset}, and that has no folder"
                remedy = "if the topic is not deleted, bring its folder back from a copy"
                yield Finding(self._path / name, what, remedy, is_fault=self._topic_of(place) is not None)

    def _log_starts(self) -> Steps:
        self._survey.read(self._path / LOG_STARTS)
        found = read_offsets(self._path / LOG_STARTS, self._survey.disk)
        self._starts = found or {}
        if found is None:
            remedy = "bring it back from a copy: without it, records that were deleted may be there again"
            yield Finding(self._path / LOG_STARTS, "it is damaged", remedy)

    def _cleaned_offsets(self) -> Steps:
        self._survey.read(self._path / CLEANED_OFFSETS)
        found = read_offsets(self._path / CLEANED_OFFSETS, self._survey.disk)
        self._cleaned = found or {}
        if found is None:
            remedy = f"{_NOTHING}: logs are compacted from their beginning once more"
            yield Finding(self._path / CLEANED_OFFSETS, "it is damaged", remedy)

    def _topic_of(self, place: Place) -> StoredTopic | None:
        topic = self._topics.get(place[0])
        return topic if topic and place[1] < topic.partition_count else None

    def _others(self) -> Steps:
        """
        What is in the folder beside its own files and partitions.
        """
        for name in sorted({*self._names} - _FILES - {*self.partitions}):
            what, remedy = "kgateway knows no such file", _UNNEEDED
            if name.endswith(DELETED):
                what, remedy = "it is left of a deleted topic", f"{_NOTHING}: the next start removes it"
            elif name.endswith(STRAY):
                what, remedy = "it belonged to no topic when the gateway started, and was put aside", _UNNEEDED
            elif name.endswith(TEMPORARY):
                what, remedy = "a process ended while it wrote it", f"{_NOTHING}: the next start removes it"
            if not (self._survey.in_use and name.endswith((DELETED, TEMPORARY))):
                yield Finding(self._path / name, what, remedy, is_fault=False)

    def _belongs(self, name: str) -> Steps:
        """
        Whether the folder is that of a partition there is.
        """
        path, place = self._path / name, _place(name)
        topic = self._topic_of(place)
        if topic is None:
            if self._changes and not self._survey.in_use:
                yield self._stray(path, place)
            return
        data = self._survey.read(path / METADATA)
        if topic_id_of(data) != topic.id:
            words = data.decode("ascii", "replace").split()
            what = f"it says {' '.join(words)[:80]!r}, and the topic {topic.name} has the id {topic.id}"
            remedy = (
                "move the folder elsewhere if it is needed: as that of a deleted topic it will be removed by and by"
            )
            yield Finding(path / METADATA, what, remedy)

    def _stray(self, path: Path, place: Place) -> Finding:
        """
        Of a folder that is of no topic: whether a crash came between the end of its topic and its own.
        """
        topic_id = topic_id_of(self._survey.read(path / METADATA))
        what, remedy = f"there is no topic {place[0]} with a partition {place[1]}", "the next start puts it aside"
        if f'{{"deleted": "{topic_id}"}}'.encode() in self._changes:
            return Finding(path, f"{what}, it was deleted", remedy, is_fault=False)
        return Finding(path, what, f"bring {TOPICS} back from a copy, if it knows the topic; else {remedy}")

    def _ahead(self, name: str, offsets: dict[Place, int]) -> Steps:
        """
        What a checkpoint knows that is not there.
        """
        for place, end in self._ends.items():
            told = offsets.get(place, 0)
            if told > end:
                what = f"it knows partition {place[0]}-{place[1]} up to offset {told}, and the log ends at {end}"
                remedy = "records are lost; before the next start, bring the partition's folder back from a copy"
                yield Finding(self._path / name, what, f"{remedy}, or their offsets are given to others")

    def _settled_counts(self) -> bool:
        """
        Whether what was written and not synced is still there.
        """
        return self._survey.in_use or self._last_end() is not LastEnd.WITH_THE_MACHINE

    def _last_end(self) -> LastEnd:
        """
        As the next start will see it. What is just being written looks as if the machine had died.
        """
        if self._survey.was_clean:
            return LastEnd.IN_ORDER
        with suppress(OSError, FolderError):
            if not self._survey.in_use and read_start(self._path / START, self._survey.disk).is_of(this_boot()):
                return LastEnd.BY_ITSELF
        return LastEnd.WITH_THE_MACHINE

    def _producer_ids(self) -> Steps:
        """
        After the logs, for what is reserved grows before it is used.
        """
        path, used = self._path / PRODUCER_IDS, self._survey.largest_producer_id
        remedy = f'write into it {{"reserved": {max(used + 1, 0) + 1000}}} while the gateway is stopped'
        if PRODUCER_IDS not in self._names:
            if used >= 0 and not self._survey.in_use:
                yield Finding(path, f"it is missing, and producer {used} has written records", remedy)
            return
        data = self._survey.read(path)
        try:
            ProducerIds.open(path, self._survey.disk)
        except FolderError as error:
            yield _told(path, error)
            return
        reserved = json.loads(data)["reserved"]
        if used >= reserved:
            yield Finding(path, f"ids below {reserved} were given, and producer {used} has written records", remedy)


def _place(name: str) -> Place:
    topic, _, index = name.rpartition("-")
    return topic, int(index)


def _told(path: Path, error: FolderError) -> Finding:
    what, _, remedy = str(error).removeprefix(f"{path} ").replace(f" of {path}", "", 1).partition("; ")
    return Finding(path, what, remedy)
