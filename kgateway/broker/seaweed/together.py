"""
Several waits at once.
"""

from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, FirstError, gatherResults

T = TypeVar("T")


async def together(coroutines: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """
    What they end with, in their order; or the failure of the first that fails, as it is.
    """
    running = [Deferred.fromCoroutine(coroutine) for coroutine in coroutines]
    try:
        return await gatherResults(running, consumeErrors=True)
    except FirstError as first:
        first.subFailure.raiseException()
