"""
How a topic is named of which only some partitions are meant.
"""

from argparse import ArgumentTypeError


def topic_partitions(text: str) -> tuple[str, list[int]]:
    """
    A topic and some of its partitions; none stand for all.
    """
    name, colon, indexes = text.partition(":")
    numbers = indexes.split(",") if colon else []
    if not name or not all(number.isdecimal() for number in numbers):
        raise ArgumentTypeError(f"{text!r} is not TOPIC or TOPIC:N,N")
    return name, [int(number) for number in numbers]
