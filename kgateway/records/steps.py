"""
Work on records that takes long, cut into steps between which others may go on.

A generator says by `None` that this is such a place. By a call it says that this one is to be made in a thread, for it
spends its time in C that lets go of the interpreter lock: it is given what comes of it, or the error. What the work
comes to, the generator returns. Who takes the steps decides when: `kgateway.converting.slices` in a gateway.
"""

from collections.abc import Callable, Generator
from typing import Any, TypeVar

T = TypeVar("T")

Steps = Generator[Callable[[], Any] | None, Any, T]

RECORDS_A_STEP = 64  # a few microseconds each
AT_ONCE_MAX = 4_096  # records that are looked at with nothing between


def at_once(steps: Steps[T]) -> T:
    """
    What the work comes to, with all steps taken here and now.
    """
    come: Any = None
    try:
        while True:
            call = steps.send(come)
            come = call() if call else None
    except StopIteration as done:
        result: T = done.value
        return result
