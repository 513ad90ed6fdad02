"""
`kgateway log check`: checks the files of a log without changing any, be it a data folder, the folder of a partition or
one segment. The latter two may be Kafka's. Of a data folder its own files are checked, each partition, and whether
these fit together.

A check may run beside the gateway that uses the folder. Small files are read before the logs, which only grow: so the
offsets in a file can lag behind the log, and are never ahead of it. The active segment may end with half a batch.
"""

import re
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

from kgateway.broker.log.data_folder.checkpoints import (
    CLEANED_OFFSETS,
    LOG_STARTS,
    SETTLED,
    SYNCED,
    Offsets,
    read_offsets,
)
from kgateway.broker.log.data_folder.config_file import CONFIGS, ConfigFile
from kgateway.broker.log.data_folder.folder_error import FolderError
from kgateway.broker.log.data_folder.meta_properties import EMPTY, META, read_meta
from kgateway.broker.log.data_folder.partition_folder import DELETED, METADATA, STRAY, topic_id_of
from kgateway.broker.log.data_folder.producer_ids import PRODUCER_IDS, read_reserved
from kgateway.broker.log.data_folder.session import CLEAN, OWN_FILES, this_boot
from kgateway.broker.log.data_folder.start_file import START, LastEnd, read_start
from kgateway.broker.log.data_folder.topic_journal import TOPICS, StoredTopic, TopicJournal
from kgateway.broker.log.files.disk import TEMPORARY, Disk
from kgateway.broker.log.inspection.findings import Finding, Reached, Steps, Survey, unreadable
from kgateway.broker.log.inspection.log_paths import (
    PARTITION_OR_SEGMENT,
    NoLog,
    is_data_folder,
    is_partition_folder,
    no_log_in,
)
from kgateway.broker.log.inspection.partition_check import UNKNOWN_FILE, PartitionCheck, SegmentCheck
from kgateway.broker.log.segments.damage import base_of
from kgateway.broker.log.segments.file_names import is_of_segment
from kgateway.cluster.partition import EARLIEST_OFFSET
from kgateway.topic_partition import TopicPartition

_PARTITION = re.compile(r"(.+)-([0-9]{1,10})")
_NONE = b"0\n0\n"  # checkpoints of no partition
_NOTHING = "no action is needed"


class FolderCheck:
    def __init__(self, survey: Survey, path: Path, names: dict[str, int]) -> None:
        self._survey = survey
        self._path = path
        self._names = names
        self.partitions = [name for name in sorted(names) if _PARTITION.fullmatch(name) and (path / name).is_dir()]
        self._topics: dict[str, StoredTopic] = {}
        self._changes = b""  # of topics, as they stand in the journal
        self._ends: Offsets = {}
        self._synced: Offsets = {}
        self._settled: Offsets = {}
        self._starts: Offsets = {}
        self._cleaned: Offsets = {}

    def steps(self, only: Collection[str]) -> Steps:
        """
        Check the wanted partitions, and the files at the root of the folder, against the partitions too.
        """
        survey = self._survey
        disk = survey.disk
        yield from survey.reading(self._path / META, self._own_file(META, lambda _: read_meta(self._path, disk)))
        yield from survey.reading(self._path / START, self._own_file(START, lambda path: read_start(path, disk)))
        yield from survey.reading(self._path / TOPICS, self._journal())
        if CONFIGS in self._names:
            configs = self._own_file(CONFIGS, lambda path: ConfigFile.open(path, disk))
            yield from survey.reading(self._path / CONFIGS, configs)
        for name, offsets in ((SYNCED, self._synced), (SETTLED, self._settled)):
            yield from survey.reading(self._path / name, self._checkpoints(name, offsets))
        for name, offsets, remedy in (
            (
                LOG_STARTS,
                self._starts,
                "restore it from a copy: without it, deleted records may reappear",
            ),
            (CLEANED_OFFSETS, self._cleaned, f"{_NOTHING}: logs are compacted from their beginning again"),
        ):
            if name in self._names:
                yield from survey.reading(self._path / name, self._offsets(name, offsets, remedy))
        yield from self._unknown_files()
        yield from self._partitions(only)
        yield from self._checkpoint_ahead(LOG_STARTS, self._starts)
        yield from self._checkpoint_ahead(CLEANED_OFFSETS, self._cleaned)
        yield from self._checkpoint_ahead(SYNCED, self._synced)
        if self._settled_counts():
            yield from self._checkpoint_ahead(SETTLED, self._settled)
        yield from survey.reading(self._path / PRODUCER_IDS, self._producer_ids())

    def _partitions(self, only: Collection[str]) -> Steps:
        survey = self._survey
        checked = dict[str, PartitionCheck]()
        for name in [name for name in self.partitions if name in only]:
            try:
                checked[name] = self._partition(name)
            except FileNotFoundError:
                pass  # its topic was deleted meanwhile
            except OSError as error:
                yield unreadable(self._path / name, error.strerror or str(error))
        survey.tally.bytes_in_all = survey.tally.bytes + sum(partition.size for partition in checked.values())
        for name, partition in checked.items():
            yield from survey.reading(self._path / name, self._belongs(name))
            yield from survey.reading(self._path / name, partition.steps())
            if partition.reached.is_known:
                self._ends[_partition_of(name)] = partition.reached.next_offset

    def _partition(self, name: str) -> PartitionCheck:
        unread = self._survey.unread
        topic = self._topics.get(_partition_of(name).topic)
        compacted = topic is not None and "compact" in topic.config.get("cleanup.policy", "")
        may_have_gaps = compacted or self._path / TOPICS in unread
        unlisted = None if self._path / LOG_STARTS in unread else EARLIEST_OFFSET
        log_start = self._starts.get(_partition_of(name), unlisted)
        return PartitionCheck(self._survey, self._path / name, log_start, may_have_gaps=may_have_gaps)

    def _own_file(self, name: str, read: Callable[[Path], object]) -> Steps:
        path = self._path / name
        self._survey.read(path)
        try:
            read(path)
        except FolderError as error:
            yield _finding_of(path, error)

    def _journal(self) -> Steps:
        path = self._path / TOPICS
        if TOPICS not in self._names:
            if self.partitions:
                yield Finding(path, "it is missing, and clients see no topics", "restore it from a copy")
            return
        data = self._survey.read(path)
        try:
            journal = TopicJournal.open(path, self._survey.disk, self._last_end())
        except FolderError as error:
            yield _finding_of(path, error)
            return
        journal.close()
        self._topics = {topic.name: topic for topic in journal.topics.values()}
        self._changes = data
        if journal.cut_bytes and not self._survey.in_use:
            what = f"the last {journal.cut_bytes} bytes belong to a change that was not completed"
            yield Finding(path, what, f"{_NOTHING}: it was not acknowledged", is_fault=False)

    def _checkpoints(self, name: str, offsets: Offsets) -> Steps:
        data = self._survey.read(self._path / name)
        offsets.update(read_offsets(self._path / name, self._survey.disk) or {})
        if not offsets and data != _NONE:
            remedy = f"{_NOTHING}: the next start takes longer, because it reads more"
            yield Finding(self._path / name, "it is damaged", remedy)
        for partition, offset in offsets.items():
            if str(partition) not in self._names and offset:
                what = f"it has partition {partition} up to offset {offset}, but that partition has no folder"
                remedy = "if the topic was not deleted, restore its folder from a copy"
                yield Finding(self._path / name, what, remedy, is_fault=self._topic_of(partition) is not None)

    def _offsets(self, name: str, offsets: Offsets, remedy: str) -> Steps:
        self._survey.read(self._path / name)
        found = read_offsets(self._path / name, self._survey.disk)
        offsets.update(found or {})
        if found is None:
            yield Finding(self._path / name, "it is damaged", remedy)

    def _topic_of(self, partition: TopicPartition) -> StoredTopic | None:
        topic = self._topics.get(partition.topic)
        return topic if topic and partition.index < topic.partition_count else None

    def _unknown_files(self) -> Steps:
        for name in sorted({*self._names} - OWN_FILES - EMPTY - {*self.partitions}):
            what, remedy = UNKNOWN_FILE
            if name.endswith(DELETED):
                what, remedy = "it is left over from a deleted topic", f"{_NOTHING}: the next start removes it"
            elif name.endswith(STRAY):
                what = "it belonged to no topic when the gateway started, and was put aside"
                remedy = "remove it if nobody needs it"
            elif name.endswith(TEMPORARY):
                what, remedy = "a process ended while writing it", f"{_NOTHING}: the next start removes it"
            if not (self._survey.in_use and name.endswith((DELETED, TEMPORARY))):
                yield Finding(self._path / name, what, remedy, is_fault=False)

    def _belongs(self, name: str) -> Steps:
        path, partition = self._path / name, _partition_of(name)
        topic = self._topic_of(partition)
        if topic is None:
            if self._changes and not self._survey.in_use:
                yield self._stray(path)
            return
        data = self._metadata(path)
        if data is None:
            if not self._survey.in_use:
                remedy = f"{_NOTHING}: it is written when the partition is next opened"
                yield Finding(path / METADATA, "it is missing", remedy, is_fault=self._survey.was_clean)
        elif topic_id_of(data) != topic.id:
            words = data.decode("ascii", "replace").split()
            what = f"it says {' '.join(words)[:80]!r}, but the topic {topic.name} has the id {topic.id}"
            remedy = "move the folder elsewhere if you need it: it will be removed as the folder of a deleted topic"
            yield Finding(path / METADATA, what, remedy)

    def _metadata(self, folder: Path) -> bytes | None:
        try:
            return self._survey.read(folder / METADATA)
        except FileNotFoundError:
            return None

    def _stray(self, path: Path) -> Finding:
        """
        A folder of no topic: a crash may have come between the deletion of its topic and its own.
        """
        what, remedy = "it is not the folder of a partition of any topic", "the next start puts it aside"
        if not self._survey.disk.names(path):
            return Finding(path, f"{what}, and is empty", remedy, is_fault=False)
        topic_id = topic_id_of(self._metadata(path) or b"")
        if f'{{"deleted": "{topic_id}"}}'.encode() in self._changes:
            return Finding(path, f"{what}: its topic was deleted", remedy, is_fault=False)
        copy = f"restore {TOPICS} from a copy that has the topic, if there is one"
        return Finding(path, what, f"{copy}; otherwise {remedy}")

    def _checkpoint_ahead(self, name: str, offsets: Offsets) -> Steps:
        for partition, end in self._ends.items():
            told = offsets.get(partition, 0)
            if told > end:
                what = f"it has partition {partition} up to offset {told}, but the log ends at {end}"
                remedy = "records are lost; with the gateway stopped, restore the partition's folder from a copy"
                yield Finding(self._path / name, what, f"{remedy}; without one, consumers skip their offsets")

    def _settled_counts(self) -> bool:
        """
        Whether everything that was written and not synced is still there.
        """
        return self._survey.in_use or self._last_end() is not LastEnd.MACHINE_CRASHED

    def _last_end(self) -> LastEnd:
        """
        How the next start will see it. A file that is being written looks as if the machine had crashed.
        """
        if self._survey.was_clean:
            return LastEnd.CLEAN_STOP
        with suppress(OSError, FolderError):
            if not self._survey.in_use and read_start(self._path / START, self._survey.disk).is_of(this_boot()):
                return LastEnd.PROCESS_CRASHED
        return LastEnd.MACHINE_CRASHED

    def _producer_ids(self) -> Steps:
        """
        Check the ids after the logs, because the reserved ones grow before they are used.
        """
        path, used = self._path / PRODUCER_IDS, self._survey.largest_producer_id
        remedy = f'write {{"reserved": {max(used + 1, 0) + 1000}}} into it while the gateway is stopped'
        if PRODUCER_IDS not in self._names:
            if used >= 0 and not self._survey.in_use:
                yield Finding(path, f"it is missing, but producer {used} has written records", remedy)
            return
        self._survey.read(path)
        try:
            reserved = read_reserved(path, self._survey.disk)
        except FolderError as error:
            yield _finding_of(path, error)
            return
        if used >= reserved:
            yield Finding(path, f"ids below {reserved} were assigned, but producer {used} has written records", remedy)


def _partition_of(name: str) -> TopicPartition:
    topic, _, index = name.rpartition("-")
    return TopicPartition(topic, int(index))


def _finding_of(path: Path, error: FolderError) -> Finding:
    what, _, remedy = str(error).removeprefix(f"{path} ").replace(f" of {path}", "", 1).partition("; ")
    return Finding(path, what, remedy)


def check_log(path: Path, disk: Disk, *, holder: str | None = None, only: Collection[str] = ()) -> tuple[Survey, Steps]:
    """
    What is known from the beginning, and the steps that check the rest. `only` names the partitions to check, such as
    `orders-0`; empty for all of them. Raises NoLog, or OSError if the path cannot be read.
    """
    if not path.is_dir():
        return _segment(path, disk)
    names = disk.names(path)
    if is_data_folder(names) or META in names:
        was_clean = holder is None and CLEAN in names
        survey = Survey(disk, is_ours=True, in_use=holder is not None, was_clean=was_clean)
        if not is_data_folder(names):
            kafkas = f"if it is Kafka's data folder, name {PARTITION_OR_SEGMENT} in it"
            raise NoLog(f"{path} is not the data folder of a kgateway; {kafkas}")
        folder = FolderCheck(survey, path, names)
        missing = sorted(set(only) - set(folder.partitions))
        if missing:
            raise NoLog(f"there is no partition {missing[0]} in {path}; only partitions that were used have a folder")
        return survey, folder.steps(only or folder.partitions)
    if is_partition_folder(names):
        survey = Survey(disk, is_ours=False, in_use=False, was_clean=False)
        survey.tally.bytes_in_all = sum(names.values())
        return survey, PartitionCheck(survey, path).steps()
    raise no_log_in(path, disk)


def _segment(path: Path, disk: Disk) -> tuple[Survey, Steps]:
    size = disk.names(path.parent)[path.name] if path.exists() else 0
    if path.exists() and not is_of_segment(path.name):
        raise NoLog(f"{path} cannot be checked on its own; name a data folder, {PARTITION_OR_SEGMENT}")
    survey = Survey(disk, is_ours=False, in_use=False, was_clean=False)
    survey.tally.bytes_in_all = size
    reached = Reached(base_of(path))
    segment = SegmentCheck(survey, path, reached, lambda header: None, is_last=True, may_have_gaps=True)
    return survey, segment.steps()
