"""
Which topics there are: a file `kgateway.topics` with a line for each change, in the order they were made. What else is
in a line, and what becomes of one that is not whole, is in topic_lines.py.

    {"topic": {"id": "...", "name": "...", "partitions": 4, "config": {"NAME": "VALUE"}, "internal": false, "born": 7}}
        which is new, or takes the place of the one with its id; `born` is the start that made it
    {"deleted": "..."}
        the id of one that is gone

A change counts when it is synced; changes that come while others are synced are written and synced together.

Opening the journal writes it anew, without the lines that are of no account any more. It is small, and whatever became
of earlier writes, what is given out then is sure.
"""

import json
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from errno import EIO
from pathlib import Path
from threading import Lock
from typing import NamedTuple, Self

from kgateway.broker.log.disk import Disk, File
from kgateway.broker.log.folder_error import FolderError, refusing
from kgateway.broker.log.start_file import LastEnd
from kgateway.broker.log.topic_lines import changes, line
from kgateway.wire.uuids import Uuid

TOPICS = "kgateway.topics"


@dataclass(frozen=True, slots=True)
class StoredTopic:
    """
    What is kept of a topic.
    """

    id: Uuid
    name: str
    partition_count: int
    config: Mapping[str, str]  # what was set for it
    internal: bool
    born: int  # the number of the start that made it


Topics = dict[Uuid, StoredTopic]


class _Change(NamedTuple):
    """
    A topic that is there from now on, or only its id: it is gone.
    """

    topic_id: Uuid
    topic: StoredTopic | None


class _Waiting(NamedTuple):
    change: _Change
    text: bytes
    sure: "Future[None]"


class TopicJournal:
    """
    The topics, and their file. Several threads may change them at once.
    """

    def __init__(self, file: File, topics: Topics, cut_bytes: int) -> None:
        self.topics = topics  # never changed: another takes its place
        self.cut_bytes = cut_bytes  # what a crash had left of changes that did not count
        self._file = file
        self._queue: deque[_Waiting] = deque()
        self._writing = Lock()
        self._refusal = ""  # why no change is taken any more

    @classmethod
    def open(cls, path: Path, disk: Disk, last_end: LastEnd) -> Self:
        """
        The journal of this file, an empty one where there is none; a FolderError where it cannot be read.
        """
        with refusing(path):
            data = _content(path, disk)
            texts, end = changes(path, data, last_end)
            topics = _after([_change(path, number, text) for number, text in enumerate(texts, 1)], {})
            disk.write(path, _compact(topics.values()), sync=True)
            return cls(disk.open(path), topics, len(data) - end)

    def put(self, topic: StoredTopic) -> None:
        """
        There is this topic, in place of the one with its id. Returns when that is sure; an OSError where it cannot be.
        """
        self._make(_Change(topic.id, topic))

    def delete(self, topic_id: Uuid) -> None:
        """
        There is no such topic any more. Returns when that is sure; an OSError where it cannot be.
        """
        self._make(_Change(topic_id, None))

    def close(self) -> bool:
        """
        Take no more changes, and give the file back; whether all that is in it is sure.
        """
        with self._writing:
            is_sure = not self._refusal
            self._refusal = "the gateway stops"
            self._file.close()
        return is_sure

    def _make(self, change: _Change) -> None:
        """
        Whoever may write does it for all who have come by then.
        """
        waiting = _Waiting(change, _text(change), Future())
        self._queue.append(waiting)
        with self._writing:
            if not waiting.sure.done():
                self._write([self._queue.popleft() for _ in range(len(self._queue))])
        waiting.sure.result()

    def _write(self, group: Sequence[_Waiting]) -> None:
        try:
            self._store([waiting.text for waiting in group])
        except BaseException as error:
            for waiting in group:
                waiting.sure.set_exception(error)
        else:
            self.topics = _after([waiting.change for waiting in group], self.topics)
            for waiting in group:
                waiting.sure.set_result(None)

    def _store(self, texts: Iterable[bytes]) -> None:
        if self._refusal:
            raise OSError(EIO, self._refusal)
        sure = self._file.size
        try:
            self._file.append([b"".join(line(sure, text) for text in texts)])
        finally:
            self._sync(sure)  # a failed append, too: what the disk had of it is not to come back

    def _sync(self, sure: int) -> None:
        try:
            self._file.sync()
        except BaseException:
            # The kernel now takes for written what was not: a second sync would only say so.
            self._refusal = "the topic journal takes no changes since a sync failed; restart the gateway"
            with suppress(OSError):
                self._file.truncate(sure)
            raise


def _content(path: Path, disk: Disk) -> bytes:
    try:
        return disk.read(path)
    except FileNotFoundError:
        return b""


def _after(changes: Iterable[_Change], topics: Topics) -> Topics:
    """
    What these topics are after the changes.
    """
    topics = dict(topics)
    for change in changes:
        if change.topic:
            topics[change.topic_id] = change.topic
        else:
            topics.pop(change.topic_id, None)
    return topics


def _compact(topics: Iterable[StoredTopic]) -> bytes:
    """
    The file that has only these; all of it is sure once it is in its place.
    """
    data = bytearray()
    for topic in topics:
        data += line(len(data), _text(_Change(topic.id, topic)))
    return bytes(data)


def _text(change: _Change) -> bytes:
    topic = change.topic
    if topic is None:
        return json.dumps({"deleted": str(change.topic_id)}).encode()
    row = {
        "id": str(topic.id),
        "name": topic.name,
        "partitions": topic.partition_count,
        "config": dict(topic.config),
        "internal": topic.internal,
        "born": topic.born,
    }
    return json.dumps({"topic": row}).encode()


def _change(path: Path, number: int, text: bytes) -> _Change:
    try:
        shown = json.loads(text)
        if "deleted" in shown:
            return _Change(Uuid.parse(shown["deleted"]), None)
        row = shown["topic"]
        topic_id = Uuid.parse(row["id"])
        topic = StoredTopic(topic_id, row["name"], row["partitions"], row["config"], row["internal"], row["born"])
        return _Change(topic_id, topic)
    except (ValueError, KeyError, TypeError):
        reason = f"line {number} of {path} is whole, and tells of what this kgateway does not know; start a newer one"
        raise FolderError(reason) from None
