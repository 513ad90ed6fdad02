"""
Faults for one process: its syncs fail, or its clock is wrong. A library loaded before the C library intercepts the
calls; it is compiled when a test first needs it.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

_SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/aio_abi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int fails(int descriptor) {
    const char *folder = getenv("SHIM_FOLDER"), *trigger = getenv("SHIM_TRIGGER");
    char link[64], path[4096];
    ssize_t size;
    if (!folder || !trigger || access(trigger, F_OK)) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return !strncmp(path, folder, strlen(folder));
}

#define SYNC(name) \
    int name(int descriptor) { \
        static int (*real)(int); \
        if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, #name); \
        if (fails(descriptor)) { errno = EIO; return -1; } \
        return real(descriptor); \
    }
SYNC(fsync)
SYNC(fdatasync)

/* Asynchronous fsyncs are refused, so that fdatasync is tried. */
long syscall(long number, ...) {
    static long (*real)(long, ...);
    long a[6];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(arguments, long);
    va_end(arguments);
    if (!real) real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    if (number == SYS_io_submit)
        for (long i = 0; i < a[1]; i++)
            if (fails(((struct iocb **)a[2])[i]->aio_fildes)) { errno = EINVAL; return -1; }
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    const char *path = getenv("SHIM_CLOCK");
    int result;
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    result = real(clock, now);
    if (path && clock == CLOCK_REALTIME) {
        FILE *file = fopen(path, "r");
        long seconds = 0;
        if (file) {
            if (fscanf(file, "%ld", &seconds) == 1) now->tv_sec += seconds;
            fclose(file);
        }
    }
    return result;
}
"""


class Shim:
    """
    Intercepts the calls of processes started while it is in the environment.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._trigger, self._clock = folder / "sync-fails", folder / "clock"
        library = compiled(folder)
        monkeypatch.setenv("LD_PRELOAD", str(library))
        monkeypatch.setenv("SHIM_TRIGGER", str(self._trigger))
        monkeypatch.setenv("SHIM_CLOCK", str(self._clock))
        self._monkeypatch = monkeypatch

    def fail_syncs_in(self, folder: Path) -> None:
        """
        Make processes started later fail their syncs in the folder, once `break_syncs` is called.
        """
        self._monkeypatch.setenv("SHIM_FOLDER", str(folder))

    def break_syncs(self) -> None:
        """
        Make every sync in the folder fail.
        """
        self._trigger.touch()

    def mend_syncs(self) -> None:
        self._trigger.unlink()

    def set_clock(self, ahead_s: int) -> None:
        """
        Set the clock ahead.
        """
        beside = self._clock.with_suffix(".new")
        beside.write_text(str(ahead_s))
        os.replace(beside, self._clock)


def compiled(folder: Path) -> Path:
    """
    The compiled library; the test is skipped where there is no compiler.
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not Path("/proc/self/fd").exists():
        pytest.skip("no C compiler, or no Linux")
    library, source = folder / "shim.so", folder / "shim.c"
    source.write_text(_SOURCE)
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"], check=True)
    return library
