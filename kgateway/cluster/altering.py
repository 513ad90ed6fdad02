"""
Changes of single configs of a resource, as IncrementalAlterConfigs has them.
"""

from collections import Counter
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from kgateway.cluster.config_resource import Overrides
from kgateway.cluster.config_rows import brief
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
    for name, count in Counter(wish.name for wish in wishes).items():
        if count > 1:
            raise _unclear(f"{brief(name)} is altered {count} times; name each config once")
    for wish in wishes:
        if wish.value is None and wish.alteration != Alteration.DELETE:
            raise _unclear(f"{brief(wish.name)} has no value; only a config that is deleted needs none")


def altered(overrides: Overrides, wishes: Sequence[Wish]) -> Overrides:
    """
    The overrides after the changes. None of the configs is a list.
    """
    after = dict(overrides)
    for name, alteration, value in wishes:
        if alteration not in list(Alteration):
            raise _unclear(f"{alteration} is no operation on {brief(name)}; these are 0 to {max(Alteration)}")
        if alteration == Alteration.SET and value is not None:
            after[name] = value
        elif alteration == Alteration.DELETE:
            after.pop(name, None)
        else:
            word = Alteration(alteration).name
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Can't {word} to {brief(name)}, which is no list")
    return after


def _unclear(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, reason)
