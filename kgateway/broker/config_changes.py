"""
Configs of resources change: first where they are kept, then for everybody to see. What comes while that is written is
written together next, each change upon what the one before has made.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from twisted.internet.defer import Deferred, fail
from twisted.python.failure import Failure

from kgateway.cluster.config_resource import AllOverrides, Change, ConfigResource, changed
from kgateway.wire.errors import ErrorCode, KafkaError


class NotKept(Exception):
    """
    Why what was changed could not be kept.
    """


class _Waiting(NamedTuple):
    resource: ConfigResource
    change: Change
    made: Deferred[None]


class ConfigChanges:
    """
    Makes changes in the order they come. `keep` says that what is set lasts, or raises NotKept.
    """

    def __init__(
        self,
        overrides: AllOverrides,
        keep: Callable[[AllOverrides], Awaitable[None]],
        show: Callable[[AllOverrides], None],
    ) -> None:
        self._overrides = overrides
        self._keep_them = keep
        self._show = show
        self._queue: list[_Waiting] = []
        self._is_busy = False
        self._is_over = False
        self._ended = Deferred[None]()

    def make(self, resource: ConfigResource, change: Change) -> Deferred[None]:
        """
        Fires when the change is sure, and shown.
        """
        if self._is_over:
            return fail(_refusal("the gateway stops"))
        made = Deferred[None]()
        self._queue.append(_Waiting(resource, change, made))
        if not self._is_busy:
            self._is_busy = True
            Deferred.fromCoroutine(self._work_off())
        return made

    async def stop(self) -> None:
        """
        Take no more changes, and make those that were taken.
        """
        self._is_over = True
        if self._is_busy:
            await self._ended

    async def _work_off(self) -> None:
        while self._queue:
            taken, self._queue = self._queue, []
            await self._make_all(taken)
        self._is_busy = False
        if self._is_over:
            self._ended.callback(None)

    async def _make_all(self, taken: Sequence[_Waiting]) -> None:
        overrides, accepted = self._overrides, list[_Waiting]()
        for waiting in taken:
            try:
                overrides = changed(overrides, waiting.resource, waiting.change)
                accepted.append(waiting)
            except Exception:
                refusal = Failure()
                refusal.cleanFailure()  # its traceback leads here, to what waits for it
                waiting.made.errback(refusal)
        reason = await self._keep(overrides)
        for waiting in accepted:
            if reason is None:
                waiting.made.callback(None)
            else:
                waiting.made.errback(_refusal(reason))

    async def _keep(self, overrides: AllOverrides) -> str | None:
        """
        Why these could not be kept; they are shown where they could be.
        """
        if overrides is self._overrides:
            return None
        try:
            await self._keep_them(overrides)
        except NotKept as why:
            return str(why)
        self._overrides = overrides
        self._show(overrides)
        return None


def _refusal(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"no config can be changed: {reason}")
