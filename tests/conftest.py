"""
Hypothesis profiles: five examples a property by default, five hundred with `--hypothesis-profile=deep`, or
DEEP_EXAMPLES. And the cleanup of what tests leave behind: a machine whose power failed, and logs that are still open.
"""

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from twisted.logger import globalLogBeginner

from kgateway.compilation import form

pytest.register_assert_rewrite("tests.broker.behaviour")  # other assertions outside of test modules show no values

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]

settings.register_profile("default", max_examples=5, deadline=None, suppress_health_check=_SLOW)
_DEEP = int(os.environ.get("DEEP_EXAMPLES", "500"))
settings.register_profile("deep", max_examples=_DEEP, deadline=None, suppress_health_check=_SLOW)
settings.load_profile("default")


_MOSTLY_WAITING = ("tests/faults/", "tests/clients/", "tests/cli/seaweedmq/", "tests/broker/seaweed")
_MANY_FILES = 256  # of the 1,024 that `select` supports
_KEPT_FILES = pytest.StashKey[int]()  # the usual number of files that are always open


def pytest_configure() -> None:
    """
    Drop early events: until logging begins Twisted keeps all of them, and with them the logs of finished tests.
    """
    globalLogBeginner.beginLoggingTo([], discardBuffer=True, redirectStandardIO=False)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """
    Three workers a processor: tests spend most of their time waiting for clusters and gateways of their own.
    """
    return 3 * len(os.sched_getaffinity(0))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """
    Compile the modules of a clean clone once, one part on each processor: every worker would compile all of them.
    """
    folders = [folder for folder in Path(__file__).parent.iterdir() if folder.is_dir() and not _is_compiled(folder)]
    if folders and not sys.dont_write_bytecode:
        processors = len(os.sched_getaffinity(0))
        parts = filter(None, (folders[first::processors] for first in range(processors)))
        command = [sys.executable, "-m", "pytest", "--collect-only", "-qq"]
        for process in [subprocess.Popen([*command, *part], stdout=subprocess.DEVNULL) for part in parts]:
            process.wait()


def _is_compiled(folder: Path) -> bool:
    return any(folder.rglob("__pycache__")) or not any(folder.rglob("*.py"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """
    Spread the modules that mostly wait over the first four fifths of the run, so that some workers compute meanwhile.
    """
    modules = dict.fromkeys(_module(item) for item in items)
    waiting = [module for module in modules if module.startswith(_MOSTLY_WAITING)]
    computing = [module for module in modules if not module.startswith(_MOSTLY_WAITING)]
    turns = {module: 0.8 * number / len(waiting) for number, module in enumerate(waiting)}
    turns |= {module: number / len(computing) for number, module in enumerate(computing)}
    items.sort(key=lambda item: turns[_module(item)])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    marker = item.get_closest_marker("pure")
    if marker and form() == "compiled":
        pytest.skip(f"the modules are compiled: {marker.args[0]}")


def _module(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def pytest_collection_finish() -> None:
    """
    Freeze modules and tests: examining them in each collection of cycles takes half a second.
    """
    gc.collect()
    gc.freeze()


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """
    Collect garbage if too many files are open: Python may be slow to find a log that a test has left open in a cycle.
    """
    kept = item.config.stash.get(_KEPT_FILES, 0)
    if _open_files() > kept + _MANY_FILES:
        gc.collect()
        item.config.stash[_KEPT_FILES] = _open_files()


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture(scope="module")
def frozen_objects() -> None:
    """
    Freeze all objects for tests that look for cycles when they end, so that only their own are examined.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture
def power_goes(frozen_objects: None) -> Iterator[None]:
    """
    Drop what was running when the power failed. Its failures, if collected in a later test, would be blamed on that.
    """
    yield
    gc.collect()
