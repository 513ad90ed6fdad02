"""
The machine and the Python that a benchmark runs on, described so that two of them can be compared.
"""

import os
import platform
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

_GIB = 1 << 30


def keep_bytecode() -> None:
    """
    Let the Pythons that this process starts keep compiled modules, as an installed program does.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def kgateway() -> str:
    """
    What `kgateway --version` says after the name.
    """
    command = [sys.executable, "-m", "kgateway", "--version"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip().removeprefix("kgateway ")


def machine(folder: Path | None = None) -> str:
    """
    Processor, cores, memory, system, and the file system of the folder for data.
    """
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / _GIB
    system = f"{platform.system()} {platform.release()}"
    return f"{_processor()}, {os.cpu_count()} cores, {memory:.0f} GiB, {system}, {_file_system(folder)}"


def python() -> str:
    """
    The version of this Python, and how it was built as far as it tells.

    Debian and its descendants optimize with a profile without configuring Python so, hence their name instead.
    """
    arguments = sysconfig.get_config_var("CONFIG_ARGS") or ""
    if sys.base_prefix == "/usr":
        build = f"{_distribution()}'s"
    else:
        build = "with" if "--enable-optimizations" in arguments else "without"
        build += " profile-guided optimization"
    return f"{platform.python_version()} ({build}, {platform.python_compiler()})"


def _processor() -> str:
    try:
        told = dict(line.split("\t: ") for line in _lines("/proc/cpuinfo") if "\t: " in line)
    except OSError:
        told = {}
    return f"{told.get('model name', 'unknown processor')} ({platform.machine()})"


def _file_system(folder: Path | None) -> str:
    """
    The type of the file system with the longest mount point above the folder.
    """
    path = Path(folder or tempfile.gettempdir()).resolve()
    try:
        mounts = [line.split()[1:3] for line in _lines("/proc/mounts")]
    except OSError:
        return "unknown file system"
    return max((len(point), kind) for point, kind in mounts if path.is_relative_to(point))[1]


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release()["NAME"].split()[0]
    except OSError:
        return "the system"


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()
