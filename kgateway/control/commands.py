"""
The commands of the control socket.
"""

from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

from kgateway.control.arguments import flag, no_more, number, text
from kgateway.control.connections import Connections
from kgateway.control.protocol import Command, CommandError, unknown
from kgateway.observe.levels import LEVELS, LogLevels
from kgateway.observe.profile import Profiler, ProfilerBusy, ProfileRow
from kgateway.observe.reasons import Reason, ReasonKind, Reasons
from kgateway.wire.errors import ErrorCode

_MS_MAX = (1 << 63) - 1
_OUTCOMES = [*ErrorCode.__members__, *ReasonKind]


def commands(
    reasons: Reasons,
    plugins: Callable[[], list[dict[str, Any]]],
    levels: LogLevels,
    profiler: Profiler,
    connections: Connections,
) -> dict[str, Command]:
    """
    All commands by name. `plugins` returns a row for each handler: key, api, versions, handler, from, priority,
    filters.
    """
    return {
        "why": Why(reasons, plugins),
        "plugins": Plugins(plugins),
        "loglevel": LogLevel(levels),
        "profile": Profile(profiler),
        "clients": connections,
    }


class Why:
    """
    The latest reasons, newest last: `limit`, and filters `client`, `api`, `code` and `since_ms`. Steps of the protocol
    are counted and left out, unless a code or `all` is asked for.
    """

    def __init__(self, reasons: Reasons, plugins: Callable[[], list[dict[str, Any]]]) -> None:
        self._reasons = reasons
        self._plugins = plugins

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        limit = int(number(given, "limit", 20, 1, self._reasons.capacity))
        since_ms = number(given, "since_ms", 0, 0, _MS_MAX)
        client, api, code = text(given, "client"), text(given, "api"), text(given, "code")
        wants_steps = flag(given, "all") or code is not None
        no_more(given)
        _check_name("error code", code, _OUTCOMES)
        _check_name("API", api, [row["api"] for row in self._plugins()] if api else [])
        found = self._reasons.latest(self._reasons.capacity, client, api, code, since_ms)
        shown = [reason for reason in found if wants_steps or not reason.is_step]
        return {
            "remembered": len(self._reasons),
            "steps": len(found) - len(shown),
            "reasons": [_shown(reason) for reason in shown[-limit:]],
        }


class Plugins:
    """
    The handler of each API, and its distribution.
    """

    def __init__(self, rows: Callable[[], list[dict[str, Any]]]) -> None:
        self._rows = rows

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        no_more(given)
        return {"plugins": self._rows()}


class LogLevel:
    """
    The level of the log. An argument `level` sets it first.
    """

    def __init__(self, levels: LogLevels) -> None:
        self._levels = levels

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        level, before = text(given, "level"), self._levels.level
        no_more(given)
        if level is not None:
            if level.lower() not in LEVELS:
                raise unknown(f"there is no log level {level}", level, LEVELS)
            self._levels.set(level.lower())
        return {"level": self._levels.level, "before": before}


class Profile:
    """
    The most expensive functions of the reactor's thread in the next `seconds`.
    """

    def __init__(self, profiler: Profiler) -> None:
        self._profiler = profiler

    async def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        seconds = number(given, "seconds", 10, 0.1, 60)
        no_more(given)
        try:
            profile = await self._profiler.run(seconds)
        except ProfilerBusy as busy:
            raise CommandError(f"{busy}: try again when it is done") from busy
        rows = [_rounded(row) for row in profile.rows]
        return {"seconds": round(profile.seconds, 3), "waiting_s": round(profile.waiting_s, 3), "rows": rows}


def _check_name(kind: str, name: str | None, known: Iterable[str]) -> None:
    if name is not None and name.lower() not in map(str.lower, known):
        raise unknown(f"there is no {kind} {name}", name, known)


def _shown(reason: Reason) -> dict[str, Any]:
    code = None if reason.code is None else reason.code.name
    return {**reason._asdict(), "code": code, "outcome": reason.outcome}


def _rounded(row: ProfileRow) -> dict[str, Any]:
    return {**asdict(row), "own_s": round(row.own_s, 6), "total_s": round(row.total_s, 6)}
