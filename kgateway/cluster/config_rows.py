"""
The rows of config tables, and the kinds of their values: how a text is parsed and what is allowed.

Texts are parsed as Kafka parses them: blanks around a value do not count, nor around the items of a list.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from enum import IntEnum
from math import isinf
from typing import Any

from kgateway.wire.errors import ErrorCode, KafkaError

INT_MAX = (1 << 31) - 1
LONG_MAX = (1 << 63) - 1

_SHOWN = 200  # characters
_SMALL, _LARGE = 1e-3, 1e7

_BOOLEANS = {"true": True, "false": False}
_INTEGER = re.compile("[+-]?[0-9]{1,19}")
_FRACTION = re.compile(r"[+-]?(Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?)")
_BLANKS = "".join(map(chr, range(ord(" ") + 1)))  # what Java trims
_REPLICAS = re.compile(r"(\*|[0-9]+:[0-9]+(,[0-9]+:[0-9]+)*)?")


class ConfigType(IntEnum):
    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


class NotAllowed(ValueError):
    """
    A text is not a value of the config, with the reason in Kafka's words and what Kafka shows of the text, if anything.
    """

    def __init__(self, shown: object, why: str) -> None:
        super().__init__(shown, why)
        self.shown, self.why = shown, why

    def of(self, name: str) -> str:
        if self.shown is None:
            return f"Configuration '{name}' {self.why}"
        return f"Invalid value {brief(str(self.shown))} for configuration {name}: {self.why}"


@dataclass(frozen=True, slots=True)
class ValueKind:
    type: ConfigType
    parse: Callable[[str], Any]  # raises NotAllowed


@dataclass(frozen=True, slots=True)
class ConfigRow:
    name: str
    kind: ValueKind
    default: str
    meaning: str
    synonym: str = ""  # the config of the broker that gives the default
    without_effect: str = ""  # why it has no effect here, or empty
    only: str = ""  # the only value that is no false promise; `without_effect` says why
    is_fixed: bool = False  # the value cannot change after the resource is created

    def read(self, text: str) -> Any:
        """
        Parse the value; INVALID_CONFIG if it cannot be served.
        """
        try:
            value = self.kind.parse(text)
        except NotAllowed as wrong:
            raise KafkaError(ErrorCode.INVALID_CONFIG, wrong.of(self.name)) from None
        if self.only and show(value) != self.only:
            reason = f"{self.name} can only be {self.only}, not {show(value)}: {self.without_effect}"
            raise KafkaError(ErrorCode.INVALID_CONFIG, reason)
        return value


def unknown(kind: str, name: str, known: Iterable[str]) -> KafkaError:
    near = get_close_matches(name, known, 1)
    meant = f"; did you mean {near[0]}?" if near else ""
    return KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown {kind} config name: {brief(name)}{meant}")


def brief(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def show(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return _as_double(value)
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _as_double(value: float) -> str:
    """
    As Java's Double.toString: small and large values with an exponent.
    """
    if isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or _SMALL <= abs(value) < _LARGE:
        return str(value)
    from decimal import Decimal  # seldom needed, and large

    digits, power = f"{Decimal(str(value)).normalize():E}".split("E")
    return f"{digits if '.' in digits else f'{digits}.0'}E{int(power)}"


def boolean() -> ValueKind:
    def parse(text: str) -> bool:
        word = text.strip(_BLANKS).lower()
        if word not in _BOOLEANS:
            raise NotAllowed(text, "Expected value to be either true or false")
        return _BOOLEANS[word]

    return ValueKind(ConfigType.BOOLEAN, parse)


def integer(low: int, high: int = INT_MAX, also: int | None = None) -> ValueKind:
    """
    A 32-bit number within bounds, or one other number with a meaning of its own.
    """
    return _number(ConfigType.INT, INT_MAX, low, high, also)


def long(low: int = -LONG_MAX - 1) -> ValueKind:
    return _number(ConfigType.LONG, LONG_MAX, low, LONG_MAX, None)


def ratio() -> ValueKind:
    def parse(text: str) -> float:
        if not _FRACTION.fullmatch(text.strip(_BLANKS)):
            raise _no_number(text, ConfigType.DOUBLE)
        value = float(text.strip(_BLANKS))
        _check_bounds(value, 0, 1)
        return value

    return ValueKind(ConfigType.DOUBLE, parse)


def word(*known: str) -> ValueKind:
    def parse(text: str) -> str:
        return _known(text.strip(_BLANKS), known)

    return ValueKind(ConfigType.STRING, parse)


def words(*known: str) -> ValueKind:
    """
    Some of the words, each once, in the given order; none is allowed.
    """

    def parse(text: str) -> tuple[str, ...]:
        items = _items(text)
        if "" in items:
            raise NotAllowed(None, "values must not be empty.")
        return tuple(dict.fromkeys(_known(item, known) for item in items))

    return ValueKind(ConfigType.LIST, parse)


def replicas(name: str) -> ValueKind:
    def parse(text: str) -> tuple[str, ...]:
        items = _items(text)
        if not _REPLICAS.fullmatch(",".join(items)):
            form = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
            rule = f"{name} must be the literal '*' or a list of replicas in the following format: {form}"
            raise NotAllowed(f"[{', '.join(items)}]", rule)
        return items

    return ValueKind(ConfigType.LIST, parse)


def _number(kind: ConfigType, largest: int, low: int, high: int, also: int | None) -> ValueKind:
    def parse(text: str) -> int:
        text = text.strip(_BLANKS)
        if not _INTEGER.fullmatch(text) or not -largest - 1 <= (value := int(text)) <= largest:
            raise _no_number(text, kind)
        if value == also:
            return value
        if also is not None and not low <= value <= high:
            raise NotAllowed(value, f"Value must be between {low} and {high} or equal to {also}")
        _check_bounds(value, low, high)
        return value

    return ValueKind(kind, parse)


def _check_bounds(value: float, low: float, high: float) -> None:
    if value < low:
        raise NotAllowed(show(value), f"Value must be at least {low}")
    if value > high:
        raise NotAllowed(show(value), f"Value must be no more than {high}")


def _no_number(text: str, kind: ConfigType) -> NotAllowed:
    return NotAllowed(text, f"Not a number of type {kind.name}")


def _known(item: str, known: tuple[str, ...]) -> str:
    if item not in known:
        raise NotAllowed(item, f"String must be one of: {', '.join(known)}")
    return item


def _items(text: str) -> tuple[str, ...]:
    return tuple(item.strip(_BLANKS) for item in text.split(",")) if text.strip(_BLANKS) else ()
