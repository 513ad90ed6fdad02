"""
A POSIX timer that kills its process. It counts and fires in the kernel, even while the process is stopped.
"""

import ctypes
import os
import signal
import time

_SIGEV_SIGNAL = 0
_SIGEVENT_BYTES = 64
_INIT_PID = 1


class NoKillTimer(Exception):
    """
    A timer cannot kill this process. The message says why.
    """


class _SigEvent(ctypes.Structure):
    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signal_number", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("rest", ctypes.c_byte * (_SIGEVENT_BYTES - ctypes.sizeof(ctypes.c_void_p) - 2 * ctypes.sizeof(ctypes.c_int))),
    )


class _TimeSpec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _TimerSpec(ctypes.Structure):
    _fields_ = (("interval", _TimeSpec), ("value", _TimeSpec))


class KillTimer:
    """
    Kills this process with SIGKILL if it is not set again in time, by the clock that the event loop goes by, which does
    not count the time of a suspended machine. Raises NoKillTimer if it would have no effect.
    """

    def __init__(self) -> None:
        if os.getpid() == _INIT_PID:
            raise NoKillTimer("this gateway is process 1 of its container, which the kernel protects from SIGKILL")
        self._libc = ctypes.CDLL(None, use_errno=True)
        if not (hasattr(self._libc, "timer_create") and hasattr(time, "CLOCK_BOOTTIME")):
            raise NoKillTimer("it needs Linux, with timer_create in its C library")
        event = _SigEvent(None, int(signal.SIGKILL), _SIGEV_SIGNAL)
        self._timer = ctypes.c_void_p()
        if self._libc.timer_create(time.CLOCK_MONOTONIC, ctypes.byref(event), ctypes.byref(self._timer)):
            raise NoKillTimer(f"timer_create failed: {os.strerror(ctypes.get_errno())}")

    def set(self, seconds: float) -> None:
        """
        Kill this process after so many seconds; 0 means never.
        """
        whole = int(seconds)
        value = _TimeSpec(whole, int((seconds - whole) * 1e9))
        if self._libc.timer_settime(self._timer, 0, ctypes.byref(_TimerSpec(_TimeSpec(0, 0), value)), None):
            raise OSError(ctypes.get_errno(), "timer_settime failed")
