"""
fsyncs of several files at the same time, from one thread.

A disk completes concurrent fsyncs with few flushes of its cache, while fsyncs one after another need a flush each. A
thread for each file would have the same effect, but the threads would cost more processor time than the fsyncs. Linux
syncs files concurrently in the kernel if the fsyncs are submitted as asynchronous I/O (io_submit), for which the C
library has no function. Where this is not possible, the files are synced one after another.
"""

import ctypes
import os
import sys
from collections.abc import Sequence
from errno import EINTR
from struct import Struct
from typing import Any, NamedTuple

AT_ONCE_MAX = 256

datasync = getattr(os, "fdatasync", os.fsync)


class CallNumbers(NamedTuple):
    """
    The numbers of the system calls io_setup, io_submit and io_getevents.
    """

    setup: int
    submit: int
    get_events: int


_CALLS = {"x86_64": CallNumbers(206, 209, 208), "aarch64": CallNumbers(0, 2, 4)}
CALLS = _CALLS.get(os.uname().machine) if sys.platform == "linux" and sys.maxsize > 1 << 32 else None

# Structures of linux/aio_abi.h on a little-endian machine.
REQUEST = Struct("<QIiHhIQQqQII")  # iocb: data, key, flags, opcode, priority, descriptor, and others that are 0 here
EVENT = Struct("<QQqq")  # io_event: data, request, result, second result
_FDSYNC = 3  # IOCB_CMD_FDSYNC


class ConcurrentFsync:
    """
    Syncs files by asynchronous I/O. Each thread that syncs uses a context of its own meanwhile.
    """

    def __init__(self, libc: Any = None, calls: CallNumbers | None = CALLS) -> None:
        self._libc = libc or ctypes.CDLL(None, use_errno=True)
        self._calls = calls
        self._unused: list[ctypes.c_ulong] = []  # contexts

    def sync(self, descriptors: Sequence[int]) -> list[OSError | None]:
        """
        fdatasync all files. Returns why that failed, for each file.
        """
        outcomes: list[OSError | None] = []
        for start in range(0, len(descriptors), AT_ONCE_MAX):
            outcomes += self._sync(descriptors[start : start + AT_ONCE_MAX])
        return outcomes

    def _sync(self, descriptors: Sequence[int]) -> list[OSError | None]:
        calls = self._calls
        context = self._context(calls) if calls is not None and len(descriptors) > 1 else None
        if calls is None or context is None:
            return [_sync_one(descriptor) for descriptor in descriptors]
        submitted = self._submit(calls, context, descriptors)
        outcomes = [None] * submitted + [_sync_one(descriptor) for descriptor in descriptors[submitted:]]
        for number, result in self._results(calls, context, submitted):
            if result < 0:
                outcomes[number] = OSError(-result, os.strerror(-result))
        self._unused.append(context)
        return outcomes

    def _context(self, calls: CallNumbers) -> ctypes.c_ulong | None:
        """
        A context that no thread uses, or `None` if the system refuses to make one.
        """
        try:
            return self._unused.pop()
        except IndexError:
            context = ctypes.c_ulong(0)
        if self._libc.syscall(calls.setup, AT_ONCE_MAX, ctypes.byref(context)) < 0:
            self._calls = None
            return None
        return context

    def _submit(self, calls: CallNumbers, context: ctypes.c_ulong, descriptors: Sequence[int]) -> int:
        """
        Begin to sync these files. Returns how many of them, from the first one on, the kernel has accepted.
        """
        packed = [
            REQUEST.pack(number, 0, 0, _FDSYNC, 0, descriptor, 0, 0, 0, 0, 0, 0)
            for number, descriptor in enumerate(descriptors)
        ]
        requests = ctypes.create_string_buffer(b"".join(packed))
        first, count = ctypes.addressof(requests), len(packed)
        pointers = (ctypes.c_void_p * count)(*range(first, first + count * REQUEST.size, REQUEST.size))
        accepted: int = self._libc.syscall(calls.submit, context, ctypes.c_long(count), pointers)
        return max(accepted, 0)

    def _results(self, calls: CallNumbers, context: ctypes.c_ulong, count: int) -> list[tuple[int, int]]:
        """
        Wait for this many syncs. Returns their numbers and their results.
        """
        results = list[tuple[int, int]]()
        while len(results) < count:
            left = count - len(results)
            events = ctypes.create_string_buffer(left * EVENT.size)
            got = self._libc.syscall(calls.get_events, context, ctypes.c_long(left), ctypes.c_long(left), events, None)
            if got < 0 and ctypes.get_errno() != EINTR:
                raise OSError(ctypes.get_errno(), "io_getevents")  # nobody knows which files are synced
            done = events.raw[: max(got, 0) * EVENT.size]
            results += [(number, result) for number, _, result, _ in EVENT.iter_unpack(done)]
        return results


def _sync_one(descriptor: int) -> OSError | None:
    try:
        datasync(descriptor)
    except OSError as error:
        return error
    return None
