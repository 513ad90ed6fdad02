"""
Changes of the configs of a resource: of single configs, as in IncrementalAlterConfigs, or of all at once, as in
AlterConfigs.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from kgateway.cluster.config_resource import Overrides
from kgateway.cluster.config_rows import brief
from kgateway.cluster.config_table import FIXED_CONFIGS
from kgateway.wire.errors import ErrorCode, KafkaError


class OpType(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class AlterConfigOp(NamedTuple):
    name: str
    type: int
    value: str | None


def check_ops(ops: Sequence[AlterConfigOp]) -> None:
    """
    Refuse with INVALID_REQUEST changes that make no sense for any config.
    """
    if len({op.name for op in ops}) < len(ops):
        raise _unclear("Error due to duplicate config keys")
    empty = [op.name for op in ops if op.value is None and op.type != OpType.DELETE]
    if empty:
        raise _unclear(f"Null value not supported for : {brief(','.join(empty))}")


def altered(overrides: Overrides, ops: Sequence[AlterConfigOp], lists: Mapping[str, str]) -> Overrides:
    """
    The overrides after the changes. `lists` has the defaults of the configs that are lists.
    """
    check_ops(ops)
    after = dict(overrides)
    for name, op_type, value in ops:
        if op_type not in list(OpType):
            raise _unclear(f"Unknown operations type {op_type}")
        if op_type == OpType.DELETE or value is None:
            after.pop(name, None)
        elif op_type == OpType.SET:
            after[name] = value
        elif name in lists:
            before = [item for item in overrides.get(name, lists[name]).split(",") if item]
            after[name] = ",".join(_LISTED[OpType(op_type)](before, _items(value)))
        else:
            word = OpType(op_type).name
            wrong = f"Can't {word} to key {brief(name)} because its type is not LIST."
            raise KafkaError(ErrorCode.INVALID_CONFIG, wrong)
    return after


def replaced(overrides: Overrides, ops: Sequence[AlterConfigOp]) -> Overrides:
    """
    The overrides after all of them are replaced. Fixed configs that are not named are kept.
    """
    check_ops(ops)
    fixed = {name: value for name, value in overrides.items() if name in FIXED_CONFIGS}
    return fixed | {op.name: op.value for op in ops if op.value is not None}


def _items(text: str) -> list[str]:
    """
    The items of a list as Java's split returns them: blanks and empty items count, except empty ones at the end.
    """
    return text.rstrip(",").split(",") if text.strip(",") else [""] * (not text)


def _appended(before: list[str], more: list[str]) -> Iterable[str]:
    return [*before, *dict.fromkeys(item for item in more if item not in before)]


def _without(before: list[str], less: list[str]) -> Iterable[str]:
    """
    Each item removes the first one equal to it.
    """
    left = list(before)
    for item in less:
        if item in left:
            left.remove(item)
    return left


_LISTED = {OpType.APPEND: _appended, OpType.SUBTRACT: _without}


def _unclear(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, reason)
