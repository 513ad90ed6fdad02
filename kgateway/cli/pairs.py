"""
Options that give something a name and a value.
"""

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Sequence

_INT_MAX = (1 << 31) - 1


def pair(text: str) -> tuple[str, str]:
    """
    NAME=VALUE; the value may be empty, and have more equals signs.
    """
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def refuse_repeated(parser: ArgumentParser, pairs: Sequence[tuple[str, str]]) -> None:
    """
    End the program where a name has two values, for one of them would be lost.
    """
    names = [name for name, _ in pairs]
    for place, name in enumerate(names):
        if name in names[:place]:
            parser.error(f"{name} is given twice: which value is meant?")


def positive(text: str, most: int = _INT_MAX) -> int:
    """
    A whole number from 1 on, as large as it can be in a request.
    """
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is no whole number from 1 on")
    if int(text) > most:
        raise ArgumentTypeError(f"{text} is more than the most there can be, {most}")
    return int(text)


def indexes(text: str) -> list[int]:
    """
    Partitions, with commas between.
    """
    numbers = text.split(",")
    if not all(number.isdecimal() for number in numbers):
        raise ArgumentTypeError(f"{text!r} is not N or N,N: partitions count from 0")
    return [int(number) for number in numbers]
