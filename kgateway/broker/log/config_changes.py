"""
Configs of resources change: first in their file, then for everybody to see. What comes while the file is written is
written together next, each change upon what the one before has made.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from twisted.internet.defer import Deferred, fail
from twisted.python.failure import Failure

from kgateway.broker.log.config_file import CONFIGS, ConfigFile
from kgateway.broker.log.parts import LogParts, plain
from kgateway.cluster.config_resource import AllOverrides, Change, ConfigResource, changed
from kgateway.wire.errors import ErrorCode, KafkaError


class _Waiting(NamedTuple):
    resource: ConfigResource
    change: Change
    made: Deferred[None]


class ConfigChanges:
    """
    Keeps changes in the file, in the order they come.
    """

    def __init__(self, file: ConfigFile, parts: LogParts, show: Callable[[AllOverrides], None]) -> None:
        self._file = file
        self._parts = parts
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
        overrides, accepted = self._file.overrides, list[_Waiting]()
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
        if overrides is self._file.overrides:
            return None
        try:
            await self._parts.in_thread(partial(self._file.write, overrides))
        except OSError as error:
            self._parts.storage.failed(CONFIGS, error)
            return plain(error)
        self._parts.storage.worked(CONFIGS)
        self._show(overrides)
        return None


def _refusal(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"no config can be changed: {reason}")
