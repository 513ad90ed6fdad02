"""
Identifies a process of a machine, so that another process on the same machine can prove that it has ended.

Only the kernel that runs a process can tell. So an identity names this kernel by the boot id, which is another one
after each boot, and by the host name, in which virtual machines differ that continue from one memory snapshot; the
namespace in which the process id counts; and the namespace of the clock that gives the start time. A process that does
not share all of these with the identified one can prove nothing.
"""

import os
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")
_STATE, _THREADS, _STARTED = 0, 17, 19  # fields of /proc/PID/stat, counted after the name of the program
_ENDED_STATES = "ZX"


class ProcessIdentity(NamedTuple):
    host: str
    boot: str
    pid_namespace: str
    time_namespace: str
    pid: int
    started: int  # in clock ticks after the boot

    def has_ended(self) -> bool:
        """
        Whether it is proven that the process has ended. A parent may not have collected its exit code yet.
        """
        own = own_identity()
        if own is None or own[:4] != self[:4]:
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:
            pass  # it exists, and is another user's
        try:
            fields = _stat_fields(self.pid)
        except (OSError, ValueError):
            return False  # a mount option such as hidepid hides it, or it has ended just now
        all_threads_ended = fields[_STATE] in _ENDED_STATES and int(fields[_THREADS]) <= 1
        return all_threads_ended or int(fields[_STARTED]) != self.started


def own_identity() -> ProcessIdentity | None:
    """
    The identity of this process; `None` if the system does not have what it takes, which is Linux with /proc.
    """
    pid = os.getpid()
    try:
        if os.readlink(_PROC / "self") != str(pid):  # /proc belongs to another namespace
            return None
        return ProcessIdentity(
            os.uname().nodename,
            (_PROC / "sys/kernel/random/boot_id").read_text().strip(),
            os.readlink(_PROC / "self/ns/pid"),
            os.readlink(_PROC / "self/ns/time"),
            pid,
            int(_stat_fields(pid)[_STARTED]),
        )
    except (OSError, ValueError, IndexError):
        return None


def _stat_fields(pid: int) -> list[str]:
    """
    The fields of /proc/PID/stat after the name of the program, which may contain anything.
    """
    return (_PROC / f"{pid}/stat").read_bytes().rpartition(b")")[2].decode("ascii").split()
