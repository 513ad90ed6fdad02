"""
A chain: objects in a folder of a filer, numbered without a gap, each number won by one writer.

Of several writers, only one wins each number, and the others learn which. If one writer is to be followed by another,
the successor makes the first missing object a fence: the chain ends there, and objects that its writer has on the way
do not count. No clock is needed for that: a writer that stood still finds its number taken.

The chain is the unbroken row of objects from the mark on. An object that cannot be read is an outage, never the end.
"""

from collections.abc import Callable

from twisted.internet.defer import Deferred, fail

from kgateway.broker.seaweed.calls.retries import Retries
from kgateway.broker.seaweed.chain.appender import ChainAppender, ChainLost, claim
from kgateway.broker.seaweed.chain.chain_folder import NO_NONCE, ChainDamaged, ChainFolder, new_nonce
from kgateway.broker.seaweed.chain.chain_folder import ChainObject as ChainObject
from kgateway.broker.seaweed.filer.filer import Filer
from kgateway.broker.seaweed.grpc.status import RpcError, Status

TakeObject = Callable[[ChainObject], object]

_AT_ONCE = 4
_NEAR = 16  # the end, if this many objects are on a page
_LEAD = 64
_PATIENCE_S = 60.0


class ChainForgotten(Exception):
    """
    The numbers asked for are below the mark. The reader begins again at the mark, with the snapshot that stands for
    what was before it.
    """

    def __init__(self, path: str, mark: int) -> None:
        super().__init__(f"{path}: nothing below its mark, {mark}, is kept")
        self.mark = mark


class Chain:
    """
    A chain as one process knows it: how far it has read, and what it appends from there on.

    A new folder may be appended to at once, any other after `catch_up`. In a chain that is `shared` by writers that do
    not fence each other, one object is on its way at a time, and a writer that loses a number catches up and tries
    again; the single writer of any other chain has lost it for good.
    """

    def __init__(
        self, filer: Filer, path: str, retries: Retries, *, shared: bool = False, patience_s: float = _PATIENCE_S
    ) -> None:
        self.fence: ChainObject | None = None  # where it ends, once that was read
        self._folder = ChainFolder(filer, path)
        self._retries = retries
        self._is_shared = shared
        self._patience_s = patience_s
        self._next = 0  # the number of the object that is read or appended next
        self._last: ChainObject | None = None  # known to be there
        self._previous: bytes | None = NO_NONCE  # the nonce before the next number, if it is known
        self._appending = self._fresh_appending()

    @property
    def next_number(self) -> int:
        """
        The number of the object that is read or appended next.
        """
        return self._next

    def catch_up(self, take: TakeObject) -> Deferred[None]:
        """
        Read on to the end, or to a fence. Nothing may be appended meanwhile.
        """
        return Deferred.fromCoroutine(self._catch_up(take))

    def read(self, number: int) -> Deferred[list[ChainObject]]:
        """
        Some of the objects from this number on, up to and with a fence; none where the chain ends. Raises
        ChainForgotten if the number is below the mark.
        """
        return Deferred.fromCoroutine(self._read(number))

    def append(self, payload: bytes) -> Deferred[int]:
        """
        Fires with the number of the new object when that and all before it are there. Fails with ChainLost if another
        writer has its number; any other failure does not say whether it will be there.
        """
        if self.fence:
            return fail(ChainLost(self._folder.path, self.fence))
        if self._appending.failure:
            return fail(self._appending.failure)
        assert self._previous is not None, "what was there has been read"
        chain_object = ChainObject(self._next, new_nonce(), self._previous, payload)
        self._next, self._previous = chain_object.number + 1, chain_object.nonce
        return self._appending.append(chain_object)

    def end(self, payload: bytes, take: TakeObject) -> Deferred[ChainObject]:
        """
        Read on to the end and make a fence there; fires with the fence, which may be another writer's.
        """
        return Deferred.fromCoroutine(self._end(payload, take))

    def confirm(self) -> Deferred[None]:
        """
        Fires if at some moment from now on nobody else had the next number, so that all of the chain is known here;
        fails with ChainLost if another writer has it.
        """
        return Deferred.fromCoroutine(self._confirm())

    def forget(self, number: int) -> Deferred[None]:
        """
        Let nothing below this number count, and delete it. The last object is kept: the next one says what it follows.
        """
        return Deferred.fromCoroutine(self._forget(number))

    def mark(self) -> Deferred[int]:
        return Deferred.fromCoroutine(self._folder.mark())

    def _fresh_appending(self) -> ChainAppender:
        return ChainAppender(self._make, 1 if self._is_shared else _AT_ONCE, self._reach)

    def _reach(self, chain_object: ChainObject) -> None:
        self._last = chain_object
        if chain_object.is_fence:
            self.fence = chain_object

    async def _make(self, chain_object: ChainObject) -> None:
        prepared = await self._folder.prepare(chain_object)
        try:
            await claim(self._folder, prepared, self._retries, self._patience_s)
        except ChainLost:
            await self._folder.discard(prepared)
            raise
        # Below the mark deleted names can be claimed again: a writer that stood still for long wins nothing by that.
        if (self._is_shared or chain_object.is_fence) and await self._folder.mark() > chain_object.number:
            raise ChainLost(self._folder.path, None)

    async def _catch_up(self, take: TakeObject) -> None:
        await self._begin_reading()
        while not self.fence and await self._read_on(take):
            pass

    async def _begin_reading(self) -> None:
        self._rewind()
        await self._skip_to_mark()

    async def _read_on(self, take: TakeObject) -> int:
        """
        Read a page. Returns how many objects it has.
        """
        page = await self._page(self._next, self._previous)
        for found in page:
            self._reach(found)
            self._next, self._previous = found.number + 1, found.nonce
            if not found.is_fence:
                take(found)
        if not page and await self._skip_to_mark():
            return await self._read_on(take)
        if self._previous is None:
            raise ChainDamaged(f"{self._folder.path}: its mark says {self._next}, but there is no such object")
        return len(page)

    def _rewind(self) -> None:
        """
        Go back to what is known to be there, if something else was to be appended.
        """
        failure = self._appending.failure
        if failure and not self._is_shared:
            raise failure
        if self._appending.unacknowledged:
            raise RuntimeError("a chain is read on while it is appended to")
        if failure:
            self._appending = self._fresh_appending()
            last = self._last
            self._next, self._previous = (last.number + 1, last.nonce) if last else (0, NO_NONCE)

    async def _skip_to_mark(self) -> bool:
        mark = await self._folder.mark()
        if mark <= self._next:
            return False
        self._next, self._previous = mark, None
        return True

    async def _page(self, number: int, previous: bytes | None) -> list[ChainObject]:
        found = []
        for each in await self._folder.page(number):
            is_ahead = each.is_fence and each.previous == NO_NONCE  # its writer did not know what it would follow
            if previous not in (None, each.previous) and not is_ahead:
                raise ChainDamaged(f"{self._folder.path}: number {each.number} does not follow the one before it")
            found.append(each)
            previous = each.nonce
            if each.is_fence:
                break
        return found

    async def _read(self, number: int) -> list[ChainObject]:
        found = await self._page(number, None if number else NO_NONCE)
        if not found and (mark := await self._folder.mark()) > number:
            raise ChainForgotten(self._folder.path, mark)
        return found

    async def _end(self, payload: bytes, take: TakeObject) -> ChainObject:
        await self._begin_reading()
        lead, is_bounded = 0, False
        while not self.fence:
            if await self._read_on(take) > _NEAR or self.fence:
                continue
            is_bounded = await self._fenced(lead, payload) or is_bounded
            # A writer that goes on appending may be faster each time. A fence ahead of it ends that; what is missing
            # before it gets a fence of its own.
            lead = 0 if is_bounded else max(_LEAD, 2 * lead)
        return self.fence

    async def _fenced(self, lead: int, payload: bytes) -> bool:
        """
        Whether there is a fence of ours now, at the next number or `lead` numbers after it.
        """
        previous = NO_NONCE if lead or self._previous is None else self._previous
        chain_object = ChainObject(self._next + lead, new_nonce(), previous, payload, is_fence=True)
        try:
            await self._make(chain_object)
        except ChainLost:
            return False
        return True

    async def _confirm(self) -> None:
        if self._appending.failure:
            raise self._appending.failure
        first = self._appending.unacknowledged
        found = await self._folder.object(first.number if first else self._next)
        if found and not self._is_ours(found):
            raise ChainLost(self._folder.path, found)

    def _is_ours(self, found: ChainObject) -> bool:
        """
        Whether this process has appended it, perhaps while it was looked up.
        """
        return (self._last is not None and found.number <= self._last.number) or self._appending.has(found)

    async def _forget(self, number: int) -> None:
        kept = min(number, self._last.number if self._last else 0)

        async def attempt(seconds: float) -> None:
            if not await self._folder.raise_mark(kept):
                raise RpcError(Status.ABORTED, f"{self._folder.path}: its mark was moved meanwhile")

        if kept:
            await self._retries.run(attempt, self._patience_s)
            await self._folder.delete_below(kept)
