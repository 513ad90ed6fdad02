"""
A chain: objects in a folder of a filer, numbered without a gap, each number won by one writer.

Of several who append only one has a number, and the others learn who. Where one writer is to be followed by another,
the heir makes the first object that is missing a fence: the chain ends there, and what its writer has on the way does
not count. No clock makes that safe; a sleeper that awakes finds its number taken.

What counts is the unbroken row of objects from the mark on. What cannot be read is an outage, never the end.
"""

from collections.abc import Callable

from twisted.internet.defer import Deferred, fail

from kgateway.broker.seaweed.chain_appending import Appending, ChainLost, win
from kgateway.broker.seaweed.chain_folder import ChainFolder
from kgateway.broker.seaweed.chain_object import NO_NONCE, ChainDamaged, new_nonce
from kgateway.broker.seaweed.chain_object import ChainObject as ChainObject
from kgateway.broker.seaweed.filer import Filer
from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.broker.seaweed.retrying import Retrying

Take = Callable[[ChainObject], object]

_AT_ONCE = 4
_NEAR = 16  # the end, where so many objects are on a page
_LEAD = 64
_PATIENCE_S = 60.0


class ChainForgotten(Exception):
    """
    What was to be read is below the mark: who needs it begins again at the mark, with what stands for what was before.
    """

    def __init__(self, path: str, mark: int) -> None:
        super().__init__(f"{path}: nothing below its mark, {mark}, is kept")
        self.mark = mark


class Chain:
    """
    A chain as one process knows it: how far it has read, and what it appends from there on.

    A new folder may be appended to at once, any other after `catch_up`. Of a chain that is `shared` by writers who do
    not fence each other one object is on its way at a time, and who has lost a number catches up and tries again; the
    one writer of any other chain has lost it for good.
    """

    def __init__(
        self, filer: Filer, path: str, retrying: Retrying, *, shared: bool = False, patience_s: float = _PATIENCE_S
    ) -> None:
        self.fence: ChainObject | None = None  # where it ends, once that was read
        self._folder = ChainFolder(filer, path)
        self._retrying = retrying
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

    def catch_up(self, take: Take) -> Deferred[None]:
        """
        Read on to the end, or to a fence. Nothing is to be appended meanwhile.
        """
        return Deferred.fromCoroutine(self._catch_up(take))

    def read(self, number: int) -> Deferred[list[ChainObject]]:
        """
        Some of the objects from this number on, as far as a fence, which is among them; none where the chain ends.
        ChainForgotten where the number is below the mark.
        """
        return Deferred.fromCoroutine(self._read(number))

    def append(self, payload: bytes) -> Deferred[int]:
        """
        Fires with the number of the new object when it is there, and all before it. ChainLost where somebody else has
        its number; any other failure says nothing of whether it will be there.
        """
        if self.fence:
            return fail(ChainLost(self._folder.path, self.fence))
        if self._appending.failure:
            return fail(self._appending.failure)
        assert self._previous is not None, "what was there has been read"
        made = ChainObject(self._next, new_nonce(), self._previous, payload)
        self._next, self._previous = made.number + 1, made.nonce
        return self._appending.append(made)

    def end(self, payload: bytes, take: Take) -> Deferred[ChainObject]:
        """
        Read on to the end and make a fence there; fires with the fence, which may be one that somebody else has made.
        """
        return Deferred.fromCoroutine(self._end(payload, take))

    def confirm(self) -> Deferred[None]:
        """
        Fires if at some moment from now on nobody else had the next number, so that all there was of the chain is known
        here; ChainLost where somebody has it.
        """
        return Deferred.fromCoroutine(self._confirm())

    def forget(self, number: int) -> Deferred[None]:
        """
        Let nothing below this number count, and take it away. The last object stays: the next one says what it follows.
        """
        return Deferred.fromCoroutine(self._forget(number))

    def mark(self) -> Deferred[int]:
        """
        The first number that counts.
        """
        return Deferred.fromCoroutine(self._folder.mark())

    def _fresh_appending(self) -> Appending:
        return Appending(self._make, 1 if self._is_shared else _AT_ONCE, self._reach)

    def _reach(self, made: ChainObject) -> None:
        self._last = made
        if made.is_fence:
            self.fence = made

    async def _make(self, made: ChainObject) -> None:
        written = await self._folder.written(made)
        try:
            await win(self._folder, written, self._retrying, self._patience_s)
        except ChainLost:
            await self._folder.discard(written)
            raise
        # Below the mark names can be won that were taken away: who has slept for long wins nothing by that.
        if (self._is_shared or made.is_fence) and await self._folder.mark() > made.number:
            raise ChainLost(self._folder.path, None)

    async def _catch_up(self, take: Take) -> None:
        await self._begin_reading()
        while not self.fence and await self._read_on(take):
            pass

    async def _begin_reading(self) -> None:
        self._rewind()
        await self._skip_to_mark()

    async def _read_on(self, take: Take) -> int:
        """
        Read a page; how many objects are on it.
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
            raise ChainDamaged(f"{self._folder.path}: its mark says {self._next}, and there is no such object")
        return len(page)

    def _rewind(self) -> None:
        """
        Go back to what is known to be there, where something else was to be appended.
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
            is_ahead = each.is_fence and each.previous == NO_NONCE  # whoever made it did not know what it would follow
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

    async def _end(self, payload: bytes, take: Take) -> ChainObject:
        await self._begin_reading()
        lead, is_bounded = 0, False
        while not self.fence:
            if await self._read_on(take) > _NEAR or self.fence:
                continue
            is_bounded = await self._fenced(lead, payload) or is_bounded
            # Whoever goes on appending may be faster each time. A fence ahead of them lets that have an end; what is
            # missing before it gets a fence of its own.
            lead = 0 if is_bounded else max(_LEAD, 2 * lead)
        return self.fence

    async def _fenced(self, lead: int, payload: bytes) -> bool:
        """
        Whether there is a fence of ours now, at the next number or so far ahead of it.
        """
        previous = NO_NONCE if lead or self._previous is None else self._previous
        made = ChainObject(self._next + lead, new_nonce(), previous, payload, is_fence=True)
        try:
            await self._make(made)
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
        Whether this process has appended it, which it may have done while it was looked up.
        """
        return (self._last is not None and found.number <= self._last.number) or self._appending.has(found)

    async def _forget(self, number: int) -> None:
        kept = min(number, self._last.number if self._last else 0)

        async def attempt(seconds: float) -> None:
            if not await self._folder.raise_mark(kept):
                raise RpcError(Status.ABORTED, f"{self._folder.path}: its mark was moved meanwhile")

        if kept:
            await self._retrying.run(attempt, self._patience_s)
            await self._folder.delete_below(kept)
