"""
The calibration of the machine, and the description of it.
"""

import os
from dataclasses import fields
from pathlib import Path

import pytest

from bench import calibration, machine
from bench.calibration import Calibration, calibrate
from kgateway import __version__

BEFORE = Calibration(python_steps=12.1e6, memcpy_mb=9_300, crc32c_mb=15_200, round_trips=28_000, fsyncs=1_200)


def test_all_of_the_machine_is_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """
    Each value is a rate, no file is left on the disk that was measured, and the process may use all cores again.
    """
    monkeypatch.setattr(calibration, "_SAMPLE_S", 0.001)
    cores = os.sched_getaffinity(0)
    found = calibrate(tmp_path)
    assert os.sched_getaffinity(0) == cores
    assert all(getattr(found, field.name) > 0 for field in fields(found))
    assert list(tmp_path.iterdir()) == []


def test_changes_are_relative() -> None:
    """
    Each value is followed by its change.
    """
    after = Calibration(python_steps=12.1e6, memcpy_mb=9_300, crc32c_mb=15_200, round_trips=21_000, fsyncs=1_320)
    assert BEFORE.told_until(after) == (
        "Python 12.1 M steps/s (+0%), memcpy 9.3 GB/s (+0%), CRC-32C 15.2 GB/s (+0%), "
        "loopback 28,000 round trips/s (-25%), 1,200 fsyncs/s (+10%)"
    )


def test_values_are_shown_with_their_units() -> None:
    assert str(BEFORE) == (
        "Python 12.1 M steps/s, memcpy 9.3 GB/s, CRC-32C 15.2 GB/s, loopback 28,000 round trips/s, 1,200 fsyncs/s"
    )


def test_the_file_system_of_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The longest mount point above a folder counts, not one whose name only begins alike.
    """
    mounts = ["/dev/a / ext4 rw 0 0", "tmpfs /data tmpfs rw 0 0", "/dev/b /data/log xfs rw 0 0"]
    monkeypatch.setattr(machine, "_lines", lambda path: mounts if path == "/proc/mounts" else ["model name\t: A CPU"])
    folders = ("/data/log/x", "/data/logs", "/database")
    kinds = [machine.machine(Path(folder)).rpartition(", ")[2] for folder in folders]
    assert kinds == ["xfs", "tmpfs", "ext4"]
    assert machine.machine(Path("/")).startswith("A CPU (")


def test_the_version_of_kgateway() -> None:
    """
    It is what the command says, which may say more than the package.
    """
    assert machine.kgateway().split()[0] == __version__


def test_the_build_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A Python that is not the system's says whether it was optimized by a profile.
    """
    monkeypatch.setattr("sys.base_prefix", "/opt/python")
    monkeypatch.setattr("sysconfig.get_config_var", lambda _: "'--enable-optimizations'")
    assert "(with profile-guided optimization, " in machine.python()
    monkeypatch.setattr("sysconfig.get_config_var", lambda _: "'--enable-shared'")
    assert "(without profile-guided optimization, " in machine.python()
    monkeypatch.setattr("sys.base_prefix", "/usr")
    monkeypatch.setattr("platform.freedesktop_os_release", lambda: {"NAME": "Debian GNU/Linux"})
    assert "(Debian's, " in machine.python()
