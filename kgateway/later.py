"""
An answer that comes later, for handlers whose waits are so many that a Deferred for each costs too much.

Who serves the request asks to be told. Whoever else has one, such as a filter, awaits it like any other answer.
"""

from collections.abc import Callable, Generator
from typing import Any

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kgateway.wire.schema import Message

Succeeded = Callable[[Message | None], object]
Failed = Callable[[Failure], object]


class Later:
    """
    Ends once, with a response or a failure, and tells one listener; what is told to nobody is lost.
    """

    __slots__ = ("_told",)

    def __init__(self) -> None:
        self._told: tuple[Succeeded, Failed] | None = None

    def tell(self, succeeded: Succeeded, failed: Failed) -> None:
        """
        Call one of these at the end.
        """
        self._told = succeeded, failed

    def cancel(self) -> None:
        """
        Come to an end now.
        """
        raise NotImplementedError

    def __await__(self) -> Generator[Any, Any, Message | None]:
        awaited: Deferred[Message | None] = Deferred(lambda _: self.cancel())
        self.tell(awaited.callback, awaited.errback)
        return awaited.__await__()

    def _response(self) -> Message | None:
        """
        What it ends with.
        """
        raise NotImplementedError

    def _end(self) -> None:
        """
        Tell it. The listener is forgotten: it holds on to this, and this to it.
        """
        told, self._told = self._told, None
        if told is None:
            return
        succeeded, failed = told
        try:
            response = self._response()
        except Exception:
            failed(Failure())
        else:
            succeeded(response)
