"""
Garbage collection as the process configures it.
"""

import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgateway.server.service import collect_cycles_seldom


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """
    Restores the settings of the test process.
    """
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


def test_a_wave_of_requests_causes_no_full_collection() -> None:
    """
    As many objects as a thousand waiting members need are created without examining older ones.
    """
    collect_cycles_seldom()
    assert gc.get_freeze_count()
    before = [generation["collections"] for generation in gc.get_stats()]
    waiting = [[number] for number in range(50_000)]
    looks = [generation["collections"] - count for generation, count in zip(gc.get_stats(), before, strict=True)]
    assert len(waiting) == 50_000
    assert (looks[0] <= 1, looks[1:]) == (True, [0, 0])


def test_cycles_are_collected() -> None:
    """
    Garbage collection is automatic.
    """
    collect_cycles_seldom()
    before = gc.get_stats()[0]["collected"]
    for _ in range(60_000):
        cycle: list[object] = []
        cycle.append(cycle)
    assert gc.get_stats()[0]["collected"] > before


_STARTS = """
import gc
from pathlib import Path
from twisted.internet import reactor
from kgateway.cli.main import main

def note():
    Path("full").write_text(str(gc.get_stats()[2]["collections"] - before))

reactor.addSystemEventTrigger("before", "shutdown", note)
reactor.callWhenRunning(reactor.callLater, 0, reactor.stop)
before = gc.get_stats()[2]["collections"]
main(["serve", "--listen", "tcp:0:interface=127.0.0.1", "--broker", "memory:"])
"""


def test_a_start_is_not_delayed_by_full_collections(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _STARTS]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    assert " is ready: " in ended.stdout
    assert (tmp_path / "full").read_text() == "0"
