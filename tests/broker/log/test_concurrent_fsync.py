"""
fsyncs of several files at the same time.
"""

import ctypes
import os
from collections.abc import Iterator
from errno import EBADF, EINTR, EINVAL, EIO, ENOSYS
from pathlib import Path
from typing import Any

import pytest

from kgateway.broker.log.files import concurrent_fsync
from kgateway.broker.log.files.concurrent_fsync import (
    AT_ONCE_MAX,
    CALLS,
    EVENT,
    REQUEST,
    CallNumbers,
    ConcurrentFsync,
)

needs_linux = pytest.mark.skipif(CALLS is None, reason="this system has no asynchronous I/O of Linux")
NUMBERS = CallNumbers(1, 2, 3)


class Kernel:
    """
    A kernel whose asynchronous fsyncs end as a test says.
    """

    def __init__(self) -> None:
        self.is_there = True
        self.accepts = AT_ONCE_MAX
        self.failing: dict[int, int] = {}  # by descriptor
        self.events_at_once = AT_ONCE_MAX
        self.interruptions = 0
        self.waiting_error = 0
        self.contexts = 0
        self.submitted: list[list[int]] = []
        self._results: list[tuple[int, int]] = []

    def syscall(self, number: int, *arguments: Any) -> int:
        if number == NUMBERS.setup:
            return self._setup(*arguments)
        if number == NUMBERS.submit:
            return self._submit(*arguments)
        assert number == NUMBERS.get_events
        return self._get_events(*arguments)

    def _setup(self, count: int, context: Any) -> int:
        self.contexts += 1
        return 0 if self.is_there else self._error(ENOSYS)

    def _submit(self, context: ctypes.c_ulong, count: ctypes.c_long, pointers: Any) -> int:
        requests = [REQUEST.unpack(ctypes.string_at(pointer, REQUEST.size)) for pointer in pointers]
        assert len(requests) == count.value
        assert {request[3] for request in requests} == {3}  # IOCB_CMD_FDSYNC
        accepted = [(request[0], request[5]) for request in requests[: self.accepts]]
        self.submitted.append([descriptor for _, descriptor in accepted])
        ends = [(number, -self.failing.get(descriptor, 0)) for number, descriptor in accepted]
        self._results = ends[::-1]
        return len(accepted) or self._error(EINVAL)

    def _get_events(
        self, context: object, least: ctypes.c_long, most: ctypes.c_long, events: Any, timeout: None
    ) -> int:
        if self.waiting_error:
            return self._error(self.waiting_error)
        if self.interruptions:
            self.interruptions -= 1
            return self._error(EINTR)
        taken, self._results = self._results[: self.events_at_once], self._results[self.events_at_once :]
        assert 0 < len(taken) <= most.value
        packed = b"".join(EVENT.pack(number, 0, result, 0) for number, result in taken)
        ctypes.memmove(events, packed, len(packed))
        return len(taken)

    @staticmethod
    def _error(code: int) -> int:
        ctypes.set_errno(code)
        return -1


@pytest.fixture
def kernel() -> Kernel:
    return Kernel()


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """
    The descriptors that are synced one after another.
    """
    synced = list[int]()
    monkeypatch.setattr(concurrent_fsync, "datasync", synced.append)
    return synced


def codes(outcomes: list[OSError | None]) -> list[int | None]:
    return [outcome.errno if outcome else None for outcome in outcomes]


@pytest.fixture
def descriptors(tmp_path: Path) -> Iterator[list[int]]:
    """
    Open files with something to sync.
    """
    opened = [os.open(tmp_path / str(number), os.O_RDWR | os.O_CREAT) for number in range(3)]
    for descriptor in opened:
        os.write(descriptor, b"content")
    yield opened
    for descriptor in opened:
        os.close(descriptor)


@needs_linux
def test_this_system_syncs_concurrently(descriptors: list[int], alone: list[int]) -> None:
    """
    No file is synced by a call of its own.
    """
    fsync = ConcurrentFsync()
    for _ in range(2):
        assert fsync.sync(descriptors) == [None] * 3
    assert alone == []


@needs_linux
def test_a_descriptor_that_the_system_refuses(descriptors: list[int]) -> None:
    """
    The others are synced.
    """
    read_end, write_end = os.pipe()
    os.close(read_end)
    os.close(write_end)
    first, second, third = descriptors
    assert codes(ConcurrentFsync().sync([first, read_end, second, third])) == [None, EBADF, None, None]


def test_each_file_fails_for_itself(kernel: Kernel, alone: list[int]) -> None:
    """
    Results arrive in any order, and belong to the files that failed.
    """
    kernel.failing = {11: EIO}
    outcomes = ConcurrentFsync(kernel, NUMBERS).sync([10, 11, 12])
    assert codes(outcomes) == [None, EIO, None]
    assert str(outcomes[1]) == "[Errno 5] Input/output error"
    assert (kernel.submitted, alone) == ([[10, 11, 12]], [])


@pytest.mark.parametrize("accepts", [0, 2])
def test_what_the_kernel_does_not_accept_is_synced_alone(accepts: int, kernel: Kernel, alone: list[int]) -> None:
    kernel.accepts = accepts
    kernel.failing = {10: EIO}
    outcomes = ConcurrentFsync(kernel, NUMBERS).sync([10, 11, 12])
    assert codes(outcomes) == [EIO if accepts else None, None, None]
    assert alone == [10, 11, 12][accepts:]


def test_waits_until_every_sync_has_ended(kernel: Kernel, alone: list[int]) -> None:
    """
    Signals interrupt the wait, and results arrive in parts.
    """
    kernel.failing, kernel.interruptions, kernel.events_at_once = {10: EIO}, 2, 1
    assert codes(ConcurrentFsync(kernel, NUMBERS).sync([10, 11])) == [EIO, None]


def test_unknown_results_are_an_error(kernel: Kernel) -> None:
    kernel.waiting_error = EINVAL
    with pytest.raises(OSError, match="io_getevents"):
        ConcurrentFsync(kernel, NUMBERS).sync([10, 11])


def test_a_system_without_asynchronous_io(kernel: Kernel, alone: list[int]) -> None:
    """
    The files are synced one after another, and the system is not asked again.
    """
    kernel.is_there = False
    fsync = ConcurrentFsync(kernel, NUMBERS)
    for _ in range(2):
        assert fsync.sync([10, 11]) == [None, None]
    assert (alone, kernel.contexts) == ([10, 11, 10, 11], 1)
    assert ConcurrentFsync(kernel, None).sync([10, 11]) == [None, None]
    assert kernel.contexts == 1


def test_one_file_is_synced_by_the_thread(kernel: Kernel, alone: list[int]) -> None:
    assert ConcurrentFsync(kernel, NUMBERS).sync([10]) == [None]
    assert (alone, kernel.submitted) == ([10], [])


def test_many_files_are_synced_in_parts(kernel: Kernel, alone: list[int]) -> None:
    """
    A context holds a limited number of requests; it is used again.
    """
    kernel.failing = {AT_ONCE_MAX + 1: EIO}
    outcomes = ConcurrentFsync(kernel, NUMBERS).sync(range(AT_ONCE_MAX + 2))
    assert codes(outcomes) == [None] * (AT_ONCE_MAX + 1) + [EIO]
    assert [len(part) for part in kernel.submitted] == [AT_ONCE_MAX, 2]
    assert kernel.contexts == 1
