"""
The arguments of a command. Each is removed when it is read, so that unknown ones remain.
"""

from typing import Any

from kgateway.control.protocol import UsageError


def text(given: dict[str, Any], name: str) -> str | None:
    value = given.pop(name, None)
    if value is not None and not isinstance(value, str):
        raise UsageError(f"{name} must be a string, not {value!r}")
    return value


def number(given: dict[str, Any], name: str, default: float, low: float, high: float) -> float:
    value = given.pop(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        shown = f"{value:g}" if isinstance(value, float) else repr(value)
        raise UsageError(f"{name} must be a number from {low} to {high}, not {shown}")
    return value


def flag(given: dict[str, Any], name: str) -> bool:
    value = given.pop(name, False)
    if not isinstance(value, bool):
        raise UsageError(f"{name} must be true or false, not {value!r}")
    return value


def no_more(given: dict[str, Any]) -> None:
    if given:
        raise UsageError(f"the command takes no {', '.join(sorted(given))}")
