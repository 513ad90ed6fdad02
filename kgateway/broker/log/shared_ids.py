"""
Gives producer ids to whoever asks, while a thread reserves more of them.
"""

from twisted.internet.defer import Deferred, DeferredLock, succeed

from kgateway.broker.log.parts import LogParts, plain
from kgateway.broker.log.producer_ids import PRODUCER_IDS, ProducerIds
from kgateway.wire.errors import ErrorCode, KafkaError


class SharedIds:
    """
    Those of one data folder.
    """

    def __init__(self, ids: ProducerIds, parts: LogParts) -> None:
        self._ids = ids
        self._parts = parts
        self._reserving = DeferredLock()

    def next(self) -> Deferred[int]:
        """
        An id that was never given; a KafkaError where none can be reserved.
        """
        if self._ids.needs_block:
            return self._reserving.run(lambda: Deferred.fromCoroutine(self._reserve()))
        return succeed(self._ids.next())

    async def _reserve(self) -> int:
        try:
            if self._ids.needs_block:
                await self._parts.in_thread(self._ids.reserve)
                self._parts.storage.worked(PRODUCER_IDS)
        except OSError as error:
            self._parts.storage.failed(PRODUCER_IDS, error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"no producer id can be given: {plain(error)}") from None
        return self._ids.next()
