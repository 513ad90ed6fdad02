"""
JSON of which nothing is lost: what stands in an object can be had character by character, a name that stands twice is
noticed, and a number that would be read as another is refused.
"""

import json
import math
import re
from typing import Any

_DIGITS_MAX = 20  # more than any field takes; Python refuses to read some thousands of them
_SPACE = re.compile(r"[ \t\n\r]*")


class _Repeating(dict[str, Any]):
    """
    An object in which a name stands more than once; it has the last value of each.
    """


class _NoNumber(ValueError):
    """
    A number that readers would not read as it was meant.
    """


def parsed(line: bytes) -> tuple[str, Any]:
    """
    The text and what it means; ValueError, in words, where it is no JSON.
    """
    try:
        text = line.decode("utf-8-sig")
        return text, _DECODER.decode(text)
    except _NoNumber:
        raise
    except (ValueError, RecursionError) as error:
        where = f" at character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else ""
        raise ValueError(f"this is no JSON{where}: {getattr(error, 'msg', error)}") from None


def written(text: str, wanted: str) -> str:
    """
    How a field is written in an object that was parsed before, and has it.
    """
    at, name = text.index("{"), None
    while name != wanted:
        name, at = _DECODER.raw_decode(text, _behind_space(text, at + 1))  # behind { or ,
        start = _behind_space(text, _behind_space(text, at) + 1)  # behind :
        _, end = _DECODER.raw_decode(text, start)
        at = _behind_space(text, end)
    return text[start:end]


def refuse_repeated(told: dict[str, Any], what: str) -> None:
    """
    ValueError where a name stands twice: one of its values would be lost.
    """
    if isinstance(told, _Repeating):
        raise ValueError(f"a name stands twice in {what}")


def _behind_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else _Repeating(found)


def _integer(text: str) -> float:
    return int(text) if len(text) <= _DIGITS_MAX else math.inf


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _NoNumber(f"{text} is more than a number can be")
    return number


def _constant(text: str) -> float:
    raise _NoNumber(f"this is no JSON: it has no {text}")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant)
