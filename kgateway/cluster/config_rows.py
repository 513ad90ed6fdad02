"""
What a config is: a row of a table, and the kind of its values, which knows how a text is read and what is allowed.

Texts are read as Kafka reads them: blanks around a value do not count, nor around the words of a list.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from enum import IntEnum
from typing import Any

from kgateway.wire.errors import ErrorCode, KafkaError

INT_MAX = (1 << 31) - 1
LONG_MAX = (1 << 63) - 1

_SHOWN = 200  # characters

_INTEGER = re.compile("[+-]?[0-9]{1,19}")
_REPLICAS = re.compile(r"(\*|[0-9]+:[0-9]+(,[0-9]+:[0-9]+)*)?")


class ConfigType(IntEnum):
    """
    The types of DescribeConfigs, by their numbers on the wire.
    """

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


@dataclass(frozen=True, slots=True)
class Kind:
    """
    A type, and which of its values are allowed.
    """

    type: ConfigType
    allowed: str
    parse: Callable[[str], Any]  # raises ValueError for what is not allowed


@dataclass(frozen=True, slots=True)
class Row:
    """
    One config.
    """

    name: str
    kind: Kind
    default: str
    meaning: str
    synonym: str = ""  # the broker's config that gives the default
    without_effect: str = ""  # why it changes nothing today; empty where it does
    only: str = ""  # the one value that is no false promise; why it is the only one, `without_effect` says

    def read(self, text: str) -> Any:
        """
        The value that a text stands for; INVALID_CONFIG where it is not one that can be served.
        """
        try:
            value = self.kind.parse(text)
        except ValueError:
            wrong = f"{self.name} is {brief(text)!r}, and must be {self.kind.allowed}"
            raise KafkaError(ErrorCode.INVALID_CONFIG, wrong) from None
        if self.only and show(value) != self.only:
            reason = f"{self.name} can only be {self.only}, not {show(value)}: {self.without_effect}"
            raise KafkaError(ErrorCode.INVALID_CONFIG, reason)
        return value


def unknown(kind: str, name: str, known: Iterable[str]) -> KafkaError:
    """
    What is told to who names a config that no resource of the kind has.
    """
    near = get_close_matches(name, known, 1)
    meant = f"; did you mean {near[0]}?" if near else ""
    return KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown {kind} config name: {brief(name)}{meant}")


def brief(text: str) -> str:
    """
    A text that a client sent, short enough for an answer.
    """
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def show(value: object) -> str:
    """
    The value as Kafka writes it.
    """
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def boolean() -> Kind:
    """
    True or false.
    """
    return Kind(ConfigType.BOOLEAN, "true or false", lambda text: ("false", "true").index(text.strip().lower()) == 1)


def integer(low: int, high: int = INT_MAX, also: int | None = None) -> Kind:
    """
    A number of 32 bits within bounds, or one other that means something else.
    """
    return _number(ConfigType.INT, low, high, also)


def long(low: int = -LONG_MAX - 1) -> Kind:
    """
    A number of 64 bits.
    """
    return _number(ConfigType.LONG, low, LONG_MAX, None)


def ratio() -> Kind:
    """
    A fraction from 0 to 1.
    """

    def parse(text: str) -> float:
        value = float(text)
        if not 0 <= value <= 1:
            raise ValueError
        return value

    return Kind(ConfigType.DOUBLE, "a number from 0 to 1", parse)


def word(*known: str) -> Kind:
    """
    One of these.
    """
    return Kind(ConfigType.STRING, f"one of {', '.join(known)}", lambda text: known[known.index(text.strip())])


def words(*known: str) -> Kind:
    """
    Some of these, each once, in the order given; or none.
    """

    def parse(text: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(known[known.index(item)] for item in _items(text)))

    return Kind(ConfigType.LIST, f"a list, with commas, of {', '.join(known)}", parse)


def replicas() -> Kind:
    """
    Partitions and brokers, for throttles.
    """

    def parse(text: str) -> tuple[str, ...]:
        items = _items(text)
        if not _REPLICAS.fullmatch(",".join(items)):
            raise ValueError
        return items

    return Kind(ConfigType.LIST, "* or a list, with commas, of PARTITION:BROKER", parse)


def _number(kind: ConfigType, low: int, high: int, also: int | None) -> Kind:
    def parse(text: str) -> int:
        if not _INTEGER.fullmatch(text.strip()):
            raise ValueError
        value = int(text)
        if value != also and not low <= value <= high:
            raise ValueError
        return value

    bounds = f"an integer from {low} to {high}"
    return Kind(kind, bounds if also is None else f"{bounds}, or {also}", parse)


def _items(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",")) if text.strip() else ()
