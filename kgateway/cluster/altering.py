"""
Changes of the configs of a resource: of single ones, as IncrementalAlterConfigs has them, or of all at once, as
AlterConfigs has.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from kgateway.cluster.config_resource import Overrides
from kgateway.cluster.config_rows import brief
from kgateway.cluster.config_table import FIXED_CONFIGS
from kgateway.wire.errors import ErrorCode, KafkaError


class Alteration(IntEnum):
    """
    What is done to a config, by Kafka's numbers.
    """

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Wish(NamedTuple):
    """
    A config that is to be altered.
    """

    name: str
    alteration: int
    value: str | None


def check_wishes(wishes: Sequence[Wish]) -> None:
    """
    Refuse with INVALID_REQUEST what means nothing, whatever configs there are.
    """
    if len({wish.name for wish in wishes}) < len(wishes):
        raise _unclear("Error due to duplicate config keys")
    empty = [wish.name for wish in wishes if wish.value is None and wish.alteration != Alteration.DELETE]
    if empty:
        raise _unclear(f"Null value not supported for : {brief(','.join(empty))}")


def altered(overrides: Overrides, wishes: Sequence[Wish], lists: Mapping[str, str]) -> Overrides:
    """
    The overrides after the changes. `lists` has the configs that are lists, and what they are where nothing is set.
    """
    check_wishes(wishes)
    after = dict(overrides)
    for name, alteration, value in wishes:
        if alteration not in list(Alteration):
            raise _unclear(f"Unknown operations type {alteration}")
        if alteration == Alteration.DELETE or value is None:
            after.pop(name, None)
        elif alteration == Alteration.SET:
            after[name] = value
        elif name in lists:
            there = [item for item in overrides.get(name, lists[name]).split(",") if item]
            after[name] = ",".join(_LISTED[Alteration(alteration)](there, _items(value)))
        else:
            word = Alteration(alteration).name
            wrong = f"Can't {word} to key {brief(name)} because its type is not LIST."
            raise KafkaError(ErrorCode.INVALID_CONFIG, wrong)
    return after


def replaced(overrides: Overrides, wishes: Sequence[Wish]) -> Overrides:
    """
    The overrides when all that is set is what these set. What cannot change stays, where they do not name it.
    """
    check_wishes(wishes)
    stay = {name: value for name, value in overrides.items() if name in FIXED_CONFIGS}
    return stay | {wish.name: wish.value for wish in wishes if wish.value is not None}


def _items(text: str) -> list[str]:
    """
    Those to add or to take away, as Java splits a text: blanks count, and so do empty ones, but for those at the end.
    """
    return text.rstrip(",").split(",") if text.strip(",") else [""] * (not text)


def _appended(there: list[str], more: list[str]) -> Iterable[str]:
    return [*there, *dict.fromkeys(item for item in more if item not in there)]


def _without(there: list[str], less: list[str]) -> Iterable[str]:
    """
    Each takes the first that is like it.
    """
    left = list(there)
    for item in less:
        if item in left:
            left.remove(item)
    return left


_LISTED = {Alteration.APPEND: _appended, Alteration.SUBTRACT: _without}


def _unclear(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, reason)
