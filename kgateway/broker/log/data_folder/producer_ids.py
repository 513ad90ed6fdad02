"""
Producer ids, each given once in the life of a folder: a file `kgateway.producer-ids`.

    {"reserved": 3000}      only ids below this one may have been given

Ids are reserved a thousand at a time, in a thread, and given from memory. Those that were reserved and not given when
the process ended are never given.
"""

import json
from collections import deque
from functools import partial
from pathlib import Path
from typing import Self

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kgateway.broker.log.data_folder.folder_error import FolderError, refusing
from kgateway.broker.log.files.disk import Disk
from kgateway.broker.log.runtime import LogRuntime, describe_error
from kgateway.wire.errors import ErrorCode, KafkaError

PRODUCER_IDS = "kgateway.producer-ids"
BLOCK = 1000
_END = 1 << 63  # of all ids


class ProducerIds:
    """
    Gives ids, and reserves more of them in a thread.
    """

    def __init__(self, path: Path, runtime: LogRuntime, reserved: int) -> None:
        self._path = path
        self._runtime = runtime
        self._next = self._reserved = reserved
        self._waiting: deque[Deferred[int]] = deque()
        self._is_reserving = False

    @classmethod
    def open(cls, path: Path, runtime: LogRuntime) -> Self:
        """
        Continue after the ids that the file reserves, at 0 if there is no file.
        """
        return cls(path, runtime, read_reserved(path, runtime.files.disk))

    def next(self) -> Deferred[int]:
        """
        Give a new id; fails with a KafkaError if none can be reserved.
        """
        given: Deferred[int] = Deferred()
        self._waiting.append(given)
        if not self._is_reserving:
            self._give_to_waiting()
        return given

    def _give_to_waiting(self) -> None:
        while self._waiting and self._next < self._reserved:
            self._next += 1
            self._waiting.popleft().callback(self._next - 1)
        if self._waiting and not self._is_reserving:
            self._reserve()

    def _reserve(self) -> None:
        self._is_reserving = True
        reserved = self._reserved + BLOCK
        data = json.dumps({"reserved": reserved}).encode() + b"\n"
        write = partial(self._runtime.files.disk.write, self._path, data, sync=True)
        self._runtime.in_thread(write).addCallbacks(lambda _: self._write_succeeded(reserved), self._write_failed)

    def _write_succeeded(self, reserved: int) -> None:
        self._runtime.health.worked(PRODUCER_IDS)
        self._reserved, self._is_reserving = reserved, False
        self._give_to_waiting()

    def _write_failed(self, failure: Failure) -> None:
        waiting, self._waiting, self._is_reserving = self._waiting, deque(), False
        error = failure.value
        if isinstance(error, OSError):
            self._runtime.health.failed(PRODUCER_IDS, error)
        for given in waiting:
            given.errback(_refusal(error) if isinstance(error, OSError) else failure)


def _refusal(error: OSError) -> KafkaError:
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"cannot assign a producer id: {describe_error(error)}")


def read_reserved(path: Path, disk: Disk) -> int:
    """
    The id before which ids may have been given, 0 if there is no file; raises FolderError if it cannot be read.
    """
    with refusing(path):
        try:
            return _decode(path, disk.read(path))
        except FileNotFoundError:
            return 0


def _decode(path: Path, data: bytes) -> int:
    try:
        reserved = json.loads(data)["reserved"]
    except (ValueError, KeyError, TypeError, RecursionError):
        reserved = None
    if type(reserved) is not int or not 0 <= reserved <= _END - BLOCK:
        raise FolderError(
            f"{path} is damaged; restore it from a copy, or write "
            '{"reserved": N} into it, with an N above every producer id that was ever assigned'
        )
    return reserved
