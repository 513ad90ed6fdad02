"""
Partitions as clients read them that do not know all of today's records.

Before Fetch v10 no client knows zstd, and Kafka refuses topics that have it for their compression. Before v4 none knows
batches: they get message sets (KIP-98), with timestamps from v2 on (KIP-32). Before v3 what does not fit is not sent
(KIP-74); a client that can read nothing for that reason gets the beginning of a message, and knows that it has to ask
for more.

Where all that is found is of no use to the client, such as the markers of transactions, Kafka sends such a beginning,
and old consumers fail. Here it is read on, as far as the log goes.
"""

from math import inf
from typing import Any, cast

from twisted.internet.defer import Deferred

from kgateway.cluster.partition import Isolation, Read
from kgateway.context import Context
from kgateway.converting.slices import OutgoingSlices
from kgateway.fetching.reading import Reader
from kgateway.fetching.wanted import Wanted
from kgateway.interfaces import IPartition
from kgateway.records.compression import Codec
from kgateway.records.downgraded import TOO_LARGE, downgraded
from kgateway.wire.errors import ErrorCode, KafkaError

ZSTD_SINCE = 10
BATCHES_SINCE = 4
_ONE_AT_LEAST_SINCE = 3
_TIMESTAMPS_SINCE = 2
_BYTES_MAX = 4 << 20  # converted for one partition at once, or one batch: there are others in the line


class ReaderBeforeZstd(Reader):
    """
    For clients before v10.
    """

    __slots__ = ()

    def partition(self, wanted: Wanted) -> IPartition:
        partition = super().partition(wanted)
        if partition.topic.config.codec is Codec.ZSTD:
            reason = f"{wanted.name} has zstd for its compression.type, and clients before Fetch v10 do not know that"
            raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, reason)
        return partition


class ReaderBeforeBatches(ReaderBeforeZstd):
    """
    For clients before v4.
    """

    __slots__ = ()

    def partition(self, wanted: Wanted) -> IPartition:
        return cast(IPartition, ConvertedPartition(super().partition(wanted), wanted, self._context))


def old_reader(version: int) -> type[Reader]:
    """
    The reader for clients of a version before that of zstd.
    """
    return ReaderBeforeBatches if version < BATCHES_SINCE else ReaderBeforeZstd


class ConvertedPartition:
    """
    A partition whose records come as message sets; all else is as it is.
    """

    def __init__(self, partition: IPartition, wanted: Wanted, context: Context) -> None:
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
        """
        As the partition does, but with message sets for batches.
        """
        at_least_one = at_least_one or self._must_fit  # to know of one that does not fit
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
            made = await self._slices.do(steps)
            if made.size or made.end == end:  # or nobody wants it any more
                return read._replace(batches=made.parts, size=made.size)
            end = made.end
            found = self._partition.read(end, most, isolation, at_least_one, due)
            read = found if isinstance(found, Read) else await found
        return self._nothing(read, max_bytes)

    def _is_useful(self, read: Read, max_bytes: int) -> bool:
        return read.size > 0 and (read.size <= max_bytes or not self._must_fit)

    def _nothing(self, read: Read, max_bytes: int) -> Read:
        """
        What is sent where nothing was found, or what does not fit: into what the client asks for, if nobody else has
        taken of that.
        """
        hint = TOO_LARGE[:max_bytes] if read.size and max_bytes == self._wanted.max_bytes else b""
        return read._replace(batches=[hint] if hint else [], size=len(hint))
