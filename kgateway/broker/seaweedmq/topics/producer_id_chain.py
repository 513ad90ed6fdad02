"""
Ids of producers, taken from the cluster a thousand at a time: each object of a chain is a block, won by one gateway.

Files of a topic tell which producers wrote it, and may be restored on another cluster. So the upper half of an id is
the cluster's: an id that is given there belongs to nobody in those files.
"""

from hashlib import sha256

from twisted.internet.defer import DeferredLock

from kgateway.broker.seaweed.chain.appender import ChainLost
from kgateway.broker.seaweed.chain.chain import Chain

_BLOCK = 1_000
_LOWER_BITS = 32
_UPPER_BITS = 31  # ids are not negative
_ATTEMPTS = 100


class ProducerIdChain:
    def __init__(self, chain: Chain, cluster_id: str) -> None:
        self._chain = chain
        self._first = _upper_half(cluster_id)
        self._ids = iter(range(0))
        self._taking = DeferredLock()  # the next block: producers may come together

    async def next(self) -> int:
        await self._taking.acquire()
        try:
            for found in self._ids:
                return found
            first = self._first + await self._won() * _BLOCK
            self._ids = iter(range(first, first + _BLOCK))
            return next(self._ids)
        finally:
            self._taking.release()

    async def _won(self) -> int:
        for attempt in range(_ATTEMPTS):
            await self._chain.catch_up(lambda _: None)
            try:
                return await self._chain.append(b"")
            except ChainLost:
                if attempt == _ATTEMPTS - 1:
                    raise
        raise AssertionError("unreachable")


def _upper_half(cluster_id: str) -> int:
    digest = int.from_bytes(sha256(cluster_id.encode()).digest(), "big")
    return digest % (1 << _UPPER_BITS) << _LOWER_BITS
