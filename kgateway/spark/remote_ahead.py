"""
What comes over a network, one piece before it is asked for.
"""

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def one_ahead(found: Generator[T, None, None]) -> Iterator[T]:
    """
    The pieces. While one is looked at the next is made, in a thread of its own, and only there.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="kgateway-ahead") as thread:
        try:
            coming = thread.submit(next, found, None)
            while (piece := coming.result()) is not None:
                coming = thread.submit(next, found, None)
                yield piece
        finally:
            thread.submit(found.close).result()
