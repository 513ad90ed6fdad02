"""
What an operator can ask of a running gateway.
"""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from kgateway.control.protocol import Command, CommandError, nearest
from kgateway.observe.levels import LEVELS, LogLevels
from kgateway.observe.profile import Profiler, ProfilerBusy, Row
from kgateway.observe.reasons import Kind, Reason, Reasons
from kgateway.wire.errors import ErrorCode

_OUTCOMES = [*ErrorCode.__members__, *Kind]


def commands(
    reasons: Reasons, plugins: Callable[[], list[dict[str, Any]]], levels: LogLevels, profiler: Profiler
) -> dict[str, Command]:
    """
    All of them, by name. `plugins` gives a row for each API: key, api, versions, handler, from, priority, filters.
    """
    return {
        "why": Why(reasons),
        "plugins": Plugins(plugins),
        "loglevel": LogLevel(levels),
        "profile": Profile(profiler),
    }


class Why:
    """
    The latest reasons, newest last: `limit`, and of which `client`, `api` and `code`.
    """

    def __init__(self, reasons: Reasons) -> None:
        self._reasons = reasons

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        limit = int(_number(given, "limit", 20, 1, self._reasons.capacity))
        client, api, code = _text(given, "client"), _text(given, "api"), _text(given, "code")
        _no_more(given)
        if code is not None and nearest(code, _OUTCOMES).lower() != code.lower():
            raise CommandError(f"there is no error code {code}; the nearest is {nearest(code, _OUTCOMES)}")
        found = self._reasons.latest(limit, client, api, code)
        return {"remembered": len(self._reasons), "reasons": [_shown(reason) for reason in found]}


class Plugins:
    """
    Which handler serves each API, and whose it is.
    """

    def __init__(self, rows: Callable[[], list[dict[str, Any]]]) -> None:
        self._rows = rows

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        _no_more(given)
        return {"plugins": self._rows()}


class LogLevel:
    """
    The level of the log; with `level`, set from now on.
    """

    def __init__(self, levels: LogLevels) -> None:
        self._levels = levels

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        level, before = _text(given, "level"), self._levels.level
        _no_more(given)
        if level is not None:
            if level.lower() not in LEVELS:
                raise CommandError(f"there is no log level {level}; the nearest is {nearest(level, LEVELS)}")
            self._levels.set(level.lower())
        return {"level": self._levels.level, "before": before}


class Profile:
    """
    The most expensive functions of the reactor's thread, in the next so many `seconds`.
    """

    def __init__(self, profiler: Profiler) -> None:
        self._profiler = profiler

    async def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        seconds = _number(given, "seconds", 10, 0.1, 60)
        _no_more(given)
        try:
            profile = await self._profiler.run(seconds)
        except ProfilerBusy as busy:
            raise CommandError(f"{busy}: ask again when it is done") from busy
        rows = [_rounded(row) for row in profile.rows]
        return {"seconds": round(profile.seconds, 3), "waiting_s": round(profile.waiting_s, 3), "rows": rows}


def _shown(reason: Reason) -> dict[str, Any]:
    code = None if reason.code is None else reason.code.name
    return {**reason._asdict(), "code": code, "outcome": reason.outcome}


def _rounded(row: Row) -> dict[str, Any]:
    return {**asdict(row), "own_s": round(row.own_s, 6), "total_s": round(row.total_s, 6)}


def _text(given: dict[str, Any], name: str) -> str | None:
    value = given.pop(name, None)
    if value is not None and not isinstance(value, str):
        raise CommandError(f"{name} is a text, and not {value!r}")
    return value


def _number(given: dict[str, Any], name: str, default: float, low: float, high: float) -> float:
    value = given.pop(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise CommandError(f"{name} is a number from {low} to {high}, and not {value!r}")
    return value


def _no_more(given: dict[str, Any]) -> None:
    if given:
        raise CommandError(f"the command takes no {', '.join(sorted(given))}")
