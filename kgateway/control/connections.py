"""
The clients that are connected to a running gateway.

There may be ten thousand of them, so they are read in slices, between which the gateway serves others.
"""

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any

from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from kgateway.control.arguments import no_more, number, text
from kgateway.control.protocol import unknown

SLICE = 100  # connections; a millisecond or so
LIMIT_MAX = 1_000
_SORTS = {
    "client": ("client_id", False),
    "since": ("since_ms", False),
    "idle": ("idle_s", True),
    "requests": ("requests", True),
    "in": ("bytes_in", True),
    "out": ("bytes_out", True),
}
SORTS = tuple(_SORTS)
_FILTERS = {"client": ("client_id", "address"), "software": ("software",), "listener": ("listener",)}

Describe = Callable[[], dict[str, Any]]


class Connections:
    """
    The connections that match the patterns `client`, `software` and `listener`, in the order of `sort`: the first
    `limit` of them, and how many there are.
    """

    def __init__(self, listed: Callable[[], list[Describe]], clock: IReactorTime) -> None:
        self._listed = listed
        self._clock = clock

    async def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        limit = int(number(given, "limit", LIMIT_MAX, 1, LIMIT_MAX))
        patterns = {name: text(given, name) for name in _FILTERS}
        sort = text(given, "sort") or SORTS[0]
        no_more(given)
        if sort not in _SORTS:
            raise unknown(f"clients cannot be sorted by {sort}", sort, SORTS)
        describers, fitting = self._listed(), []
        for start in range(0, len(describers), SLICE):
            if start:
                await deferLater(self._clock, 0, lambda: None)
            rows = [describe() for describe in describers[start : start + SLICE]]
            fitting += [row for row in rows if _fits(row, patterns)]
        key, largest_first = _SORTS[sort]
        fitting.sort(key=lambda row: (row[key], row["address"]), reverse=largest_first)
        return {"connected": len(describers), "fitting": len(fitting), "clients": fitting[:limit]}


def _fits(row: dict[str, Any], patterns: dict[str, str | None]) -> bool:
    return all(
        pattern is None or any(fnmatchcase(row[field], pattern) for field in _FILTERS[name])
        for name, pattern in patterns.items()
    )
