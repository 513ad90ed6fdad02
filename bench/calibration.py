"""
What the machine can do, in three seconds: `python -m bench.calibration`.

Every benchmark calibrates before it begins and after it has ended. So the results of two machines can be compared, and
a machine that became slower meanwhile is noticed. Each value is the median of a few short samples of a fixed piece of
work:

 - Python: iterations of a loop that calls a method, looks up a key and cuts a slice
 - memcpy: copies of 64 MiB, which is more than most caches hold
 - crc32c: the checksum of 1 MiB, with the library that checks record batches
 - loopback: 100 bytes to a process on another core by TCP and back, one at a time
 - fsync: 4 KiB appended to a file and synced, in the folder where the benchmark keeps its data
"""

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import median
from time import perf_counter

from crc32c import crc32c

_SAMPLES = 5
_SAMPLE_S = 0.1
_COPIED = 64 << 20
_CHECKED = 1 << 20
_MESSAGE = bytes(100)
_PAGE = bytes(4096)
_STEPS = 10_000
_ECHO = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as peer:
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while data := peer.recv(4096):
        peer.sendall(data)
"""


@dataclass(frozen=True, slots=True)
class Calibration:
    """
    Amounts a second.
    """

    python_steps: float
    memcpy_mb: float
    crc32c_mb: float
    round_trips: float
    fsyncs: float

    def __str__(self) -> str:
        return self.told_until(None)

    def told_until(self, later: "Calibration | None") -> str:
        """
        The values, each with its change until a later calibration.
        """
        told: tuple[str, ...] = (
            f"Python {self.python_steps / 1e6:.1f} M steps/s",
            f"memcpy {self.memcpy_mb / 1e3:.1f} GB/s",
            f"CRC-32C {self.crc32c_mb / 1e3:.1f} GB/s",
            f"loopback {self.round_trips:,.0f} round trips/s",
            f"{self.fsyncs:,.0f} fsyncs/s",
        )
        if later:
            changes = [getattr(later, field.name) / getattr(self, field.name) - 1 for field in fields(self)]
            told = tuple(f"{value} ({change:+.0%})" for value, change in zip(told, changes, strict=True))
        return ", ".join(told)


def calibrate(folder: Path | None = None) -> Calibration:
    """
    Measure the machine, and the disk of this folder.
    """
    source, target, checked = bytearray(_COPIED), memoryview(bytearray(_COPIED)), bytes(_CHECKED)

    def copy() -> None:
        target[:] = source

    return Calibration(
        python_steps=_rate(_steps) * _STEPS,
        memcpy_mb=_rate(copy) * _COPIED / 1e6,
        crc32c_mb=_rate(lambda: crc32c(checked)) * _CHECKED / 1e6,
        round_trips=_round_trips(),
        fsyncs=_fsyncs(folder),
    )


def _rate(work: Callable[[], object]) -> float:
    """
    How often a second the work can be done.
    """
    work()
    rates = []
    for _ in range(_SAMPLES):
        began, count = perf_counter(), 0
        while (took := perf_counter() - began) < _SAMPLE_S:
            work()
            count += 1
        rates.append(count / took)
    return median(rates)


class _Sum:
    def __init__(self) -> None:
        self.total = 0

    def add(self, number: int) -> None:
        self.total += number


def _steps() -> None:
    table, data, slices, total = {number: number + 1 for number in range(64)}, bytes(128), [], _Sum()
    for number in range(_STEPS):
        place = number & 63
        total.add(table[place])
        slices.append(data[place : place + 8])


def _round_trips() -> float:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with subprocess.Popen([sys.executable, "-c", _ECHO, str(port)]) as echo:
            peer, _ = server.accept()
            with peer, _on_two_cores(echo.pid):
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

                def go_and_return() -> None:
                    peer.sendall(_MESSAGE)
                    left = len(_MESSAGE)
                    while left:
                        left -= len(peer.recv(left))

                return _rate(go_and_return)


@contextmanager
def _on_two_cores(other: int) -> Iterator[None]:
    """
    Keep this process and another one apart if there are two cores, because the rate is another where both share one.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(other, cores[-1:])
    os.sched_setaffinity(0, cores[:1])
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def _fsyncs(folder: Path | None) -> float:
    os.sync()  # or what was written before would be synced, too
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:

        def append() -> None:
            file.write(_PAGE)
            os.fsync(file.fileno())

        return _rate(append)


if __name__ == "__main__":
    print(calibrate())
