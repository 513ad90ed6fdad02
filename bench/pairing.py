"""
Timing of several ways to do one thing, in turn, so that a machine that slows down slows all of them.
"""

import gc
from collections.abc import Callable
from statistics import median
from time import perf_counter

ROUNDS = 15
ROUND_SECONDS = 0.02


def timed(ways: dict[str, Callable[[], object]]) -> dict[str, float]:
    """
    The median time of a call of each way, in microseconds.
    """
    loops = {name: _loops(call) for name, call in ways.items()}
    samples: dict[str, list[float]] = {name: [] for name in ways}
    gc.disable()
    for _ in range(ROUNDS):
        for name, call in ways.items():
            samples[name].append(_seconds(call, loops[name]) * 1e6)
    gc.enable()
    return {name: median(found) for name, found in samples.items()}


def _loops(call: Callable[[], object]) -> int:
    call()
    return max(1, int(ROUND_SECONDS / max(_seconds(call, 3), 1e-9)))


def _seconds(call: Callable[[], object], loops: int) -> float:
    started = perf_counter()
    for _ in range(loops):
        call()
    return (perf_counter() - started) / loops
