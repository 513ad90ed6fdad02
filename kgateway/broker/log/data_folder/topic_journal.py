"""
The topics of a data folder: a file `kgateway.topics` with a line for each change, in the order they were made.

    CRC SYNCED CHANGE

    CRC         CRC-32C of the rest of the line, 8 hexadecimal digits
    SYNCED      everything before this position of the file was synced before this line was written
    CHANGE      one of these, as JSON in ASCII:

    {"topic": {"id": "...", "name": "...", "partitions": 4, "config": {"NAME": "VALUE"}, "internal": false, "born": 7}}
        a topic that is new, or replaces the one with its id; `born` is the start that made it
    {"deleted": "..."}
        the id of a deleted topic

A change counts when it is synced; changes that arrive while others are synced are written and synced together. Opening
the journal rewrites it without superseded lines: it is small, and whatever became of earlier writes, what is shown
then is synced.

Everything acknowledged was synced. So lines at the end of the file that are not intact are a change that was not
finished, and is left out; or they are damaged, and only the operator can know what they were. How the last process
ended tells them apart:

    it stopped in good order    nothing is unfinished
    it crashed                  the file ends in the middle of a line: its newline was written last
    the machine crashed         that, or sectors of what was not synced are missing, and read as zeroes

Anything else is damaged; so is a part that was synced, as a later line says.
"""

import json
import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from errno import EIO
from io import BytesIO
from pathlib import Path
from threading import Lock
from typing import NamedTuple, Self

from crc32c import crc32c

from kgateway.broker.log.data_folder.folder_error import FolderError, refusing
from kgateway.broker.log.data_folder.start_file import LastEnd
from kgateway.broker.log.files.disk import Disk, File
from kgateway.wire.uuids import Uuid

TOPICS = "kgateway.topics"
_SECTOR = 512
_BEGUN = re.compile(rb"[0-9a-f]{0,8}|[0-9a-f]{8} [0-9]*|[0-9a-f]{8} [0-9]+ ([ -~]*)")
_ZEROES = re.compile(rb"\0+")
_SYNCED_END = re.compile(rb"[0-9]{1,19}")


@dataclass(frozen=True, slots=True)
class StoredTopic:
    id: Uuid
    name: str
    partition_count: int
    config: Mapping[str, str]  # what was set for it
    internal: bool
    born: int  # the number of the start that made it


Topics = dict[Uuid, StoredTopic]


class _Change(NamedTuple):
    topic_id: Uuid
    topic: StoredTopic | None


class _Waiting(NamedTuple):
    change: _Change
    text: bytes
    synced: "Future[None]"


class TopicJournal:
    """
    The topics, and their file. Several threads may change them at the same time.
    """

    def __init__(self, file: File, topics: Topics, cut_bytes: int) -> None:
        self.topics = topics  # never changed, only replaced
        self.cut_bytes = cut_bytes  # of an unfinished change, which a crash had left
        self._file = file
        self._queue: deque[_Waiting] = deque()
        self._writing = Lock()
        self._refusal = ""  # why no change is taken any more

    @classmethod
    def open(cls, path: Path, disk: Disk, last_end: LastEnd) -> Self:
        """
        Read the journal, an empty one if there is no file. Raises FolderError if it cannot be read.
        """
        with refusing(path):
            data = _content(path, disk)
            texts, end = changes(path, data, last_end)
            topics = _applied([_change(path, number, text) for number, text in enumerate(texts, 1)], {})
            disk.write(path, _without_superseded(topics.values()), sync=True)
            return cls(disk.open(path), topics, len(data) - end)

    def put(self, topic: StoredTopic) -> None:
        """
        Add a topic or replace the one with its id. Returns once that is synced, raises OSError if it cannot be.
        """
        self._apply(_Change(topic.id, topic))

    def delete(self, topic_id: Uuid) -> None:
        """
        Delete a topic. Returns once that is synced, raises OSError if it cannot be.
        """
        self._apply(_Change(topic_id, None))

    def close(self) -> bool:
        """
        Take no more changes and close the file. Returns whether everything in it is synced.
        """
        with self._writing:
            is_synced = not self._refusal
            self._refusal = "the gateway is stopping"
            self._file.close()
        return is_synced

    def _apply(self, change: _Change) -> None:
        """
        The thread that has the lock writes the changes of all that wait.
        """
        waiting = _Waiting(change, _text(change), Future())
        self._queue.append(waiting)
        with self._writing:
            if not waiting.synced.done():
                self._write([self._queue.popleft() for _ in range(len(self._queue))])
        waiting.synced.result()

    def _write(self, group: Sequence[_Waiting]) -> None:
        try:
            self._store([waiting.text for waiting in group])
        except BaseException as error:
            for waiting in group:
                waiting.synced.set_exception(error)
        else:
            self.topics = _applied([waiting.change for waiting in group], self.topics)
            for waiting in group:
                waiting.synced.set_result(None)

    def _store(self, texts: Iterable[bytes]) -> None:
        if self._refusal:
            raise OSError(EIO, self._refusal)
        synced = self._file.size
        try:
            self._file.append([b"".join(encode_line(synced, text) for text in texts)])
        finally:
            self._sync(synced)  # after a failed append, too: what the disk has of it must not come back

    def _sync(self, synced: int) -> None:
        try:
            self._file.sync()
        except BaseException:
            # The kernel believes that the pages are written: a second fsync would succeed without writing them.
            self._refusal = "the topic journal accepts no changes since a sync failed; restart the gateway"
            with suppress(OSError):
                self._file.truncate(synced)
            raise


def _content(path: Path, disk: Disk) -> bytes:
    try:
        return disk.read(path)
    except FileNotFoundError:
        return b""


def _applied(changes: Iterable[_Change], topics: Topics) -> Topics:
    topics = dict(topics)
    for change in changes:
        if change.topic:
            topics[change.topic_id] = change.topic
        else:
            topics.pop(change.topic_id, None)
    return topics


def _without_superseded(topics: Iterable[StoredTopic]) -> bytes:
    """
    The journal with one line for each topic. Each line says that everything before it is synced, which is true once the
    file is in its place.
    """
    data = bytearray()
    for topic in topics:
        data += encode_line(len(data), _text(_Change(topic.id, topic)))
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
        reason = (
            f"line {number} of {path} is intact, but this version of kgateway does not understand it; start a newer one"
        )
        raise FolderError(reason) from None


def encode_line(synced: int, change: bytes) -> bytes:
    rest = b"%d %s" % (synced, change)
    return b"%08x %s\n" % (crc32c(rest), rest)


def changes(path: Path, data: bytes, last_end: LastEnd) -> tuple[list[bytes], int]:
    """
    The changes of the intact lines, and where these end. Raises FolderError if a line was intact once and is damaged.
    """
    found, end, unfinished = list[bytes](), 0, 0
    for number, raw_line in enumerate(BytesIO(data), 1):
        parsed = _parsed(raw_line)
        if parsed is None:
            unfinished = unfinished or number
        elif not unfinished:
            found.append(parsed[1])
            end += len(raw_line)
        elif parsed[0] > end:
            raise _damaged(path, unfinished, "it was intact once: later lines still are")
    if unfinished and last_end is LastEnd.CLEAN_STOP:
        raise _damaged(path, unfinished, "it was intact once: the gateway was shut down cleanly")
    if unfinished and not _from_a_crash(data, end, last_end):
        raise _damaged(path, unfinished, "a crash does not leave it like this")
    return found, end


def _parsed(raw_line: bytes) -> tuple[int, bytes] | None:
    """
    How much was synced, and the change; `None` if the line is not intact.
    """
    crc, _, rest = raw_line.removesuffix(b"\n").partition(b" ")
    synced, _, change = rest.partition(b" ")
    if not raw_line.endswith(b"\n") or crc != b"%08x" % crc32c(rest) or not _SYNCED_END.fullmatch(synced):
        return None
    return int(synced), change


def _from_a_crash(data: bytes, end: int, last_end: LastEnd) -> bool:
    """
    Whether everything after this position may never have been synced.
    """
    first = data[end:].partition(b"\n")[0]
    if end + len(first) == len(data) and _is_begun(first):
        return True
    return last_end is LastEnd.MACHINE_CRASHED and _misses_sectors(data, end, end + len(first))


def _is_begun(raw_line: bytes) -> bool:
    """
    Whether a line can begin like this: a complete line with another byte in place of its newline does not count.
    """
    begun = _BEGUN.fullmatch(raw_line)
    if begun is None:
        return False
    change = (begun[1] or b"").decode("ascii")
    try:
        return json.JSONDecoder().raw_decode(change)[1] == len(change)
    except (ValueError, RecursionError):
        return True


def _misses_sectors(data: bytes, start: int, stop: int) -> bool:
    """
    Whether this part has zeroes, and all of them fill sectors: the first sector may have been synced up to the start.
    """
    runs = [found.span() for found in _ZEROES.finditer(data, start, stop)]
    begins = all(first == start or first % _SECTOR == 0 for first, _ in runs)
    return bool(runs) and begins and all(last == len(data) or last % _SECTOR == 0 for _, last in runs)


def _damaged(path: Path, number: int, why: str) -> FolderError:
    return FolderError(
        f"line {number} of {path} is damaged, and {why}; restore the file from a copy, or remove the line: its topic "
        "is then as it was before the line, or put aside if the line created it"
    )
