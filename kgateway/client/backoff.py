"""
Attempts that are repeated when the next one may succeed, with a pause before each.
"""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
_PAUSE_S, _PAUSE_MAX_S = 0.05, 2.0


def retry(
    attempt: Callable[[], T],
    patience_s: Callable[[Exception], float],
    report: Callable[[Exception, float], None] = lambda error, patience_s: None,
) -> T:
    """
    Repeat an attempt until it succeeds, or until a failure's patience ends, counted from the first attempt; then the
    failure is raised. Each pause is twice as long as the one before, up to two seconds. The first failure that is
    retried is reported, with its patience.
    """
    began, pause_s = time.monotonic(), _PAUSE_S
    while True:
        try:
            return attempt()
        except Exception as error:
            patience = patience_s(error)
            if time.monotonic() - began + pause_s > patience:
                raise
            if pause_s == _PAUSE_S:
                report(error, patience)
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _PAUSE_MAX_S)
