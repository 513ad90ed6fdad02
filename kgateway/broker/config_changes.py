"""
Changes of configs are saved before they are shown. Those that arrive during a save share the next one.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from twisted.internet.defer import Deferred, fail
from twisted.python.failure import Failure

from kgateway.cluster.config_resource import AllOverrides, Change, ConfigResource, changed
from kgateway.wire.errors import ErrorCode, KafkaError


class ConfigsNotSaved(Exception):
    """
    A change of configs could not be saved; the message says why.
    """


class _Waiting(NamedTuple):
    resource: ConfigResource
    change: Change
    done: Deferred[None]


class ConfigChanges:
    """
    Makes changes in the order they arrive. `save` saves them or raises ConfigsNotSaved; `show` then shows them.
    """

    def __init__(
        self,
        overrides: AllOverrides,
        save: Callable[[AllOverrides], Awaitable[None]],
        show: Callable[[AllOverrides], None],
    ) -> None:
        self._overrides = overrides
        self._save = save
        self._show = show
        self._queue: list[_Waiting] = []
        self._is_busy = False
        self._is_over = False
        self._ended = Deferred[None]()

    def make(self, resource: ConfigResource, change: Change) -> Deferred[None]:
        """
        Fires once the change is saved and shown.
        """
        if self._is_over:
            return fail(_refusal("the gateway is stopping"))
        done = Deferred[None]()
        self._queue.append(_Waiting(resource, change, done))
        if not self._is_busy:
            self._is_busy = True
            Deferred.fromCoroutine(self._work_off())
        return done

    async def stop(self) -> None:
        """
        Accept no more changes, and make those that were accepted.
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
                waiting.done.errback(refusal)
        reason = await self._save_and_show(overrides)
        for waiting in accepted:
            if reason is None:
                waiting.done.callback(None)
            else:
                waiting.done.errback(_refusal(reason))

    async def _save_and_show(self, overrides: AllOverrides) -> str | None:
        """
        Save and show these overrides. Returns why they could not be saved.
        """
        if overrides is self._overrides:
            return None
        try:
            await self._save(overrides)
        except ConfigsNotSaved as error:
            return str(error)
        self._overrides = overrides
        self._show(overrides)
        return None


def _refusal(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"no config can be changed: {reason}")
