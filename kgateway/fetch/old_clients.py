"""
Partitions for clients that do not know all of the present record format.

Before Fetch v10 no client knows zstd, and Kafka refuses topics that have it as their compression.type. Before v4 no
client knows batches: they get message sets (KIP-98), with timestamps from v2 on (KIP-32). Before v3 what does not fit
is not sent (KIP-74); a client that can read nothing for that reason gets the head of a message, and knows that it has
to ask for more.

If all that is found is of no use to the client, such as the markers of transactions, Kafka sends such a head, and old
consumers fail. This gateway reads on, up to the end of the log.
"""

from dataclasses import replace
from math import inf
from typing import Any, cast

from twisted.internet.defer import Deferred

from kgateway.cluster.partition import Isolation, Read
from kgateway.context import Context
from kgateway.conversion.slices import OutgoingSlices
from kgateway.fetch.reader import Reader
from kgateway.fetch.sessions import FetchPartition
from kgateway.interfaces import IPartition
from kgateway.records.compression import Codec
from kgateway.records.to_message_set import TOO_LARGE, downgraded
from kgateway.wire.errors import ErrorCode, KafkaError

ZSTD_SINCE = 10
BATCHES_SINCE = 4
_ONE_AT_LEAST_SINCE = 3
_TIMESTAMPS_SINCE = 2
_BYTES_MAX = 4 << 20  # or one batch, converted for one partition at a time: others wait in line


class ReaderBeforeZstd(Reader):
    __slots__ = ()

    def partition(self, wanted: FetchPartition) -> IPartition:
        partition = super().partition(wanted)
        if partition.topic.config.codec is Codec.ZSTD:
            reason = f"{wanted.name} has compression.type=zstd, which clients before Fetch v10 do not know"
            raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, reason)
        return partition


class ReaderBeforeBatches(ReaderBeforeZstd):
    __slots__ = ()

    def partition(self, wanted: FetchPartition) -> IPartition:
        return cast(IPartition, ConvertedPartition(super().partition(wanted), wanted, self._context))


def old_reader(version: int) -> type[Reader]:
    return ReaderBeforeBatches if version < BATCHES_SINCE else ReaderBeforeZstd


class ConvertedPartition:
    """
    A partition whose records come as message sets.
    """

    def __init__(self, partition: IPartition, wanted: FetchPartition, context: Context) -> None:
        self._partition = partition
        self._wanted = wanted
        self._session = context.session
        self._slices = context.service(OutgoingSlices)
        self._magic = 0 if context.version < _TIMESTAMPS_SINCE else 1
        self._must_fit = context.version < _ONE_AT_LEAST_SINCE

    def __getattr__(self, name: str) -> Any:
        return getattr(self._partition, name)

    def read(
        self, offset: int, max_bytes: int, isolation: Isolation, at_least_one: bool, due: float = inf
    ) -> Read | Deferred[Read]:
        at_least_one = at_least_one or self._must_fit  # to learn of one that does not fit
        found = self._partition.read(offset, min(max_bytes, _BYTES_MAX), isolation, at_least_one, due)
        if isinstance(found, Read) and not self._is_useful(found, max_bytes):
            return self._nothing(found, max_bytes)
        return Deferred.fromCoroutine(self._converted(found, offset, max_bytes, isolation, at_least_one, due))

    async def _converted(
        self,
        found: Read | Deferred[Read],
        offset: int,
        max_bytes: int,
        isolation: Isolation,
        at_least_one: bool,
        due: float,
    ) -> Read:
        end, most = offset, min(max_bytes, _BYTES_MAX)
        read = found if isinstance(found, Read) else await found
        while self._is_useful(read, max_bytes):
            steps = downgraded(read.batches, self._magic, offset, most, lambda: not self._session.connected)
            converted = await self._slices.do(steps)
            if converted.size or converted.end == end:  # or the client is gone
                return replace(read, batches=converted.parts, size=converted.size)
            end = converted.end
            found = self._partition.read(end, most, isolation, at_least_one, due)
            read = found if isinstance(found, Read) else await found
        return self._nothing(read, max_bytes)

    def _is_useful(self, read: Read, max_bytes: int) -> bool:
        return read.size > 0 and (read.size <= max_bytes or not self._must_fit)

    def _nothing(self, read: Read, max_bytes: int) -> Read:
        """
        The answer if nothing was found, or if it does not fit. The head of a message is sent if no other partition has
        used up the bytes that the client asks for.
        """
        hint = TOO_LARGE[:max_bytes] if read.size and max_bytes == self._wanted.max_bytes else b""
        return replace(read, batches=[hint] if hint else [], size=len(hint))
