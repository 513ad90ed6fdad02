"""
Damage to valid messages: always the same of the same message.
"""

from collections.abc import Callable, Iterator
from itertools import cycle, islice
from random import Random

from tests.fuzz.anatomy import Edit, Form, Role, edited, marks, renumbered
from tests.fuzz.seeds import Seed, seeds

_EXTREMES = [
    *(number.to_bytes(2, "big", signed=True) for number in (-(1 << 15), -1, 0, (1 << 15) - 1)),
    *(number.to_bytes(4, "big", signed=True) for number in (-(1 << 31), -1, 0, ITEMS, (1 << 31) - 1)),
    *(Form.UNSIGNED.written(number) for number in (1 << 14, 1 << 28, (1 << 31) - 1, (1 << 32) - 1, 1 << 32, (1 << 64) - 1)),
    b"\xff" * 5,
    b"\x80" * 10,
    b"\x80\x80\x80\x80\0",  # zero, the long way
]
