"""
The kinds of values of settings: numbers, sizes, durations, words, files.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_BOOLEANS = {"yes": True, "true": True, "on": True, "1": True, "no": False, "false": False, "off": False, "0": False}
BYTES = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
MILLISECONDS = {"": 1, "ms": 1, "s": 1000, "min": 60_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_UNLIMITED = "-1"
_I32_MAX = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class SettingKind:
    metavar: str
    allowed: str
    parse: Callable[[str], object]  # raises ValueError, saying what is wrong
    toml: tuple[type, ...] = (str,)
    show: Callable[[Any], str] = str


def number(low: int, high: int = _I32_MAX) -> SettingKind:
    return _amount("NUMBER", "an integer from {} to {}", {"": 1}, low, high)


def size(low: int, high: int = _I32_MAX) -> SettingKind:
    """
    Bytes: `100000`, `64MiB`, `1GiB`.
    """
    return _amount("SIZE", "a size from {} to {}, such as 100000 or 64MiB", BYTES, low, high)


def duration(low: int, high: int = _I32_MAX) -> SettingKind:
    """
    Milliseconds: `5000`, `30s`, `10min`.
    """
    return _amount(
        "DURATION", "milliseconds from {} to {}, or a duration such as 30s or 10min", MILLISECONDS, low, high
    )


def duration_or_unlimited(high: int) -> SettingKind:
    """
    A duration, or -1, Kafka's value for no limit.
    """
    limited = duration(0, high)
    allowed = f"{limited.allowed}, or {_UNLIMITED} for no limit"

    def parse(text: str) -> object:
        if text == _UNLIMITED:
            return int(text)
        try:
            return limited.parse(text)
        except ValueError:
            raise ValueError(f"it must be {allowed}") from None

    def show(value: int) -> str:
        return limited.show(value) if value >= 0 else _UNLIMITED

    return SettingKind(limited.metavar, allowed, parse, limited.toml, show)


def _amount(metavar: str, wording: str, units: Mapping[str, int], low: int, high: int) -> SettingKind:
    def show(value: int) -> str:
        unit = max((unit for unit in units if (value or 1) % units[unit] == 0), key=units.__getitem__)
        return f"{value // units[unit]}{unit}"

    def parse(text: str) -> int:
        match = re.fullmatch("([0-9]{1,19})([A-Za-z]*)", text)
        if not match or match[2] not in units or not low <= int(match[1]) * units[match[2]] <= high:
            raise ValueError(f"it must be {allowed}")
        return int(match[1]) * units[match[2]]

    allowed = wording.format(show(low), show(high))
    return SettingKind(metavar, allowed, parse, (int, str) if len(units) > 1 else (int,), show)


def matching(metavar: str, allowed: str, pattern: str) -> SettingKind:
    def parse(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"it must be {allowed}")
        return text

    return SettingKind(metavar, allowed, parse)


def choice(*words: str) -> SettingKind:
    return matching("|".join(words), f"{', '.join(words[:-1])} or {words[-1]}", "|".join(words))


def boolean() -> SettingKind:
    def parse(text: str) -> bool:
        if text.lower() not in _BOOLEANS:
            raise ValueError(f"it must be {allowed}")
        return _BOOLEANS[text.lower()]

    allowed = "yes or no"
    return SettingKind("YES|NO", allowed, parse, (bool,), lambda value: "yes" if value else "no")


def path(allowed: str = "a path", most_bytes: int = 4095) -> SettingKind:
    def parse(text: str) -> str:
        if not 1 <= len(os.fsencode(text)) <= most_bytes or "\0" in text:
            raise ValueError(f"it must be {allowed}")
        return text

    return SettingKind("FILE", allowed, parse)
