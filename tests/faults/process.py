"""
What the system knows of a process, and allows one.
"""

import os
import resource
from pathlib import Path

MIB = 1 << 20
_TICKS = os.sysconf("SC_CLK_TCK")  # clock ticks per second


def allow_files(count: int) -> int:
    """
    Let this process, and those it starts, have so many files; how many they can have.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))
        except (ValueError, OSError):
            count = hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count), max(hard, count)))
    return count


def resident_bytes(pid: int) -> int:
    """
    Its memory now.
    """
    return _status_kib(pid, "VmRSS") * 1024


def peak_resident_bytes(pid: int) -> int:
    return _status_kib(pid, "VmHWM") * 1024


def started_at(pid: int) -> str:
    """
    Its start time, which distinguishes it from another process with the same number.
    """
    return _stat(pid)[19]


def cpu_seconds(pid: int) -> float:
    """
    Its CPU time, in user and system mode.
    """
    return (int(_stat(pid)[11]) + int(_stat(pid)[12])) / _TICKS


def _stat(pid: int) -> list[str]:
    """
    The fields behind its name, which may contain anything.
    """
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _status_kib(pid: int, name: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))
