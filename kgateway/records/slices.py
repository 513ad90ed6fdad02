"""
Long work on records, cut into steps between which other work can run.

The work is a generator. It yields `None` between two steps. It yields a call that is to run in a thread, because the
call spends its time in C and releases the interpreter lock; then the generator gets the result, or the error is raised
in it. It returns the result of the work. `kgateway.conversion.slices` runs the steps in a gateway.
"""

from collections.abc import Callable, Generator
from typing import Any, TypeVar

T = TypeVar("T")

Steps = Generator[Callable[[], Any] | None, Any, T]

RECORDS_A_STEP = 64  # a few microseconds each
AT_ONCE_MAX = 4_096  # records in one step


def at_once(steps: Steps[T]) -> T:
    """
    The result of the work, with all steps run here and now.
    """
    sent: Any = None
    try:
        while True:
            call = steps.send(sent)
            sent = call() if call else None
    except StopIteration as done:
        result: T = done.value
        return result
