"""
Offsets of partitions that only grow, and are kept for good before anybody is shown them, in files of Kafka's form
(checkpoints.py):

    log-start-offset-checkpoint   where logs begin, as far as that is not with their first segment: no crash may bring
                                  back what was let go
    cleaner-offset-checkpoint     up to where they are compacted

Many that come while a file is written share the next writing of it.
"""

from functools import partial
from pathlib import Path

from twisted.internet.defer import Deferred, succeed
from twisted.python.failure import Failure

from kgateway.broker.log.checkpoints import Offsets, Place, read_offsets, written
from kgateway.broker.log.parts import LogParts
from kgateway.cluster.partition import EARLIEST_OFFSET

LOG_STARTS = "log-start-offset-checkpoint"
CLEANED_OFFSETS = "cleaner-offset-checkpoint"


class KeptOffsets:
    """
    Those of one file.
    """

    def __init__(self, path: Path, parts: LogParts) -> None:
        self._path = path
        self._parts = parts
        found = read_offsets(self._path, parts.files.disk)
        self.is_damaged = found is None  # then it tells of none
        self._known = found or {}
        self._wanted: Offsets = {}
        self._gone = set[str]()  # topics of whose partitions the file may still tell
        self._waiting: list[Deferred[None]] = []
        self._writing = False

    def of(self, place: Place) -> int:
        """
        That of a partition; the earliest where none is kept.
        """
        return self._known.get(place, EARLIEST_OFFSET)

    def keep(self, places: set[Place]) -> None:
        """
        There are no other partitions than these.
        """
        for place in self._known.keys() - places:
            self.forget(place)

    def forget(self, place: Place) -> None:
        """
        There is no such partition any more.
        """
        self._wanted.pop(place, None)
        if self._known.pop(place, None) or self._writing:
            self._gone.add(place[0])

    def begin(self, name: str) -> Deferred[None]:
        """
        There will be a topic of this name: fires when the file tells nothing of an earlier one.
        """
        return self._write_soon() if name in self._gone or self._writing else succeed(None)

    def put(self, place: Place, offset: int) -> Deferred[None]:
        """
        It is this one, or a later one; fires when that will outlast the machine.
        """
        self._wanted[place] = max(offset, self._wanted.get(place, EARLIEST_OFFSET))
        return self._write_soon()

    def stop(self) -> Deferred[None]:
        """
        Fires when no thread is busy with the file any more.
        """
        ended = self._write_soon() if self._writing else succeed(None)
        return ended.addErrback(lambda _: None)

    def _write_soon(self) -> Deferred[None]:
        done: Deferred[None] = Deferred()
        self._waiting.append(done)
        if not self._writing:
            self._write()
        return done

    def _write(self) -> None:
        self._writing = True
        known, waiting, gone = self._known, self._waiting, self._gone
        wanted = {place: max(offset, self.of(place)) for place, offset in self._wanted.items()}
        self._waiting, self._gone, self._wanted = [], set(), {}
        write = partial(self._parts.files.disk.write, self._path, written(known | wanted), sync=True)
        writing = self._parts.in_thread(write)
        writing.addCallbacks(lambda _: self._written(wanted), lambda failure: self._failed(failure, gone))
        writing.addCallback(self._go_on, waiting)

    def _written(self, wanted: Offsets) -> None:
        self._known |= {place: offset for place, offset in wanted.items() if place[0] not in self._gone}
        self._parts.storage.worked(self._path.name)

    def _failed(self, failure: Failure, gone: set[str]) -> OSError:
        self._gone |= gone
        error = failure.value
        if not isinstance(error, OSError):
            failure.raiseException()
        self._parts.storage.failed(self._path.name, error)
        return error

    def _go_on(self, error: OSError | None, waiting: list[Deferred[None]]) -> None:
        self._writing = False
        if self._waiting:
            self._write()
        for done in waiting:
            if error is None:
                done.callback(None)
            else:
                done.errback(error)
