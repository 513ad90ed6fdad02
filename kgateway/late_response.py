"""
The response of a Fetch that waits: there are too many of them for a Deferred each. It is here and not in `fetch`,
because the dispatcher knows it.

The dispatcher gives it two callbacks. Other code, such as a filter, awaits it like any other response.
"""

from collections.abc import Callable, Generator
from typing import Any

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kgateway.wire.schema import Message

Succeeded = Callable[[Message | None], object]
Failed = Callable[[Failure], object]


class LateResponse:
    """
    Ends once, with a response or a failure, and calls the callback for it.

    Cancelling it calls `cancel`, which asks for the end.
    """

    __slots__ = ("_cancel", "_listener")

    def __init__(self, cancel: Callable[[], None]) -> None:
        self._cancel: Callable[[], None] | None = cancel
        self._listener: tuple[Succeeded, Failed] | None = None

    @property
    def ended(self) -> bool:
        return self._cancel is None

    def call_at_end(self, succeeded: Succeeded, failed: Failed) -> None:
        self._listener = succeeded, failed

    def cancel(self) -> None:
        if self._cancel:
            self._cancel()

    def __await__(self) -> Generator[Any, Any, Message | None]:
        awaited: Deferred[Message | None] = Deferred(lambda _: self.cancel())
        self.call_at_end(awaited.callback, awaited.errback)
        return awaited.__await__()

    def end(self, respond: Callable[[], Message | None]) -> None:
        """
        Give the listener what `respond` returns or raises; nothing is made for nobody.

        Both callables are forgotten: they hold references to this response.
        """
        listener, self._listener, self._cancel = self._listener, None, None
        if listener is None:
            return
        succeeded, failed = listener
        try:
            response = respond()
        except Exception:
            failed(Failure())
        else:
            succeeded(response)
