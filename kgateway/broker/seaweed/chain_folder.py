"""
The folder of a chain in a filer: its objects, each in a file of its own, and its mark.

    00000000000000000007    the object with the number 7
    mark                    below the number in this file nothing counts, whatever there is

A small object stands in its entry: it is there in a third of the time. But the filer keeps those bytes twice, and once
more after they are deleted, so a larger object is put onto a volume server first.

A chain is decided by one filer for ever: no two of them create what is absent only once.
"""

from itertools import accumulate
from typing import NamedTuple

from twisted.logger import Logger

from kgateway.broker.seaweed.chain_object import ChainDamaged, ChainObject, decoded, name_of, number_of
from kgateway.broker.seaweed.filer import Filer
from kgateway.broker.seaweed.grpc.status import RpcError
from kgateway.broker.seaweed.paths import below
from kgateway.broker.seaweed.protos.filer_pb2 import Entry
from kgateway.broker.seaweed.refused import FilerRefused
from kgateway.broker.seaweed.together import together
from kgateway.broker.seaweed.volumes import Uploaded

MARK = "mark"

_INLINE_MAX = 16 * 1024
_CREATE_S = 10.0
_READ_S = 30.0
_PAGE = 256  # entries
_PAGE_BYTES = 4 << 20
_DELETED_AT_ONCE = 16


class Written(NamedTuple):
    """
    An object that can be created, as often as needed: what is created is the same each time.
    """

    made: ChainObject
    entry: Entry
    uploaded: Uploaded | None


class ChainFolder:
    """
    One chain, by one filer.
    """

    _log = Logger()

    def __init__(self, filer: Filer, path: str) -> None:
        self.path = path
        self._filer = filer

    async def written(self, made: ChainObject) -> Written:
        """
        Have the bytes of an object ready.
        """
        data = made.encoded()
        if len(data) <= _INLINE_MAX:
            return Written(made, self._filer.small_file(data), None)
        uploaded = await self._filer.volumes.upload(self._path(made.number), data)
        entry = self._filer.small_file(b"")
        entry.chunks.append(uploaded.chunk)
        entry.attributes.file_size = len(data)
        return Written(made, entry, uploaded)

    async def create(self, written: Written, timeout_s: float) -> bool:
        """
        Let the object be there unless there is one with its number; whether it was made. A failure says nothing.
        """
        path, seconds = self._path(written.made.number), min(timeout_s, _CREATE_S)
        return await self._filer.create(path, written.entry, only_if_absent=True, timeout_s=seconds)

    async def discard(self, written: Written) -> None:
        """
        Take the bytes away of an object that will never be there.
        """
        if written.uploaded:
            try:
                await self._filer.volumes.remove(written.uploaded)
            except (RpcError, FilerRefused) as error:  # what is left costs space, and harms nobody
                self._log.info("{path}: bytes that nobody needs are left: {error}", path=self.path, error=error)

    async def object(self, number: int, timeout_s: float = _READ_S) -> ChainObject | None:
        """
        The object with this number, if there is one.
        """
        entry = await self._filer.entry(self._path(number), timeout_s)
        return await self._object(entry, self._path(number), timeout_s) if entry else None

    async def page(self, number: int) -> list[ChainObject]:
        """
        Some of the objects from this number on, without a gap; none where that one is not there.
        """
        after = name_of(number - 1) if number else ""
        listed = await self._filer.entries(self.path, after=after, limit=_PAGE)
        sizes = accumulate((entry.attributes.file_size for entry in listed), initial=0)
        wanted = [
            self._object(entry, below(self.path, entry.name), _READ_S)
            for (index, entry), before in zip(enumerate(listed), sizes, strict=False)
            if number_of(entry.name) == number + index and before <= _PAGE_BYTES
        ]
        if wanted:
            return await together(wanted)
        # That a listing leaves something out does not prove that it is not there.
        missed = await self.object(number)
        return [missed] if missed else []

    async def mark(self) -> int:
        """
        The first number that counts.
        """
        entry = await self._filer.entry(self._mark_path)
        return self._marked(entry) if entry else 0

    async def raise_mark(self, number: int) -> bool:
        """
        Let nothing below this number count; whether that is so now. If not, somebody else has moved it meanwhile.
        """
        content = b"%d" % number
        entry = await self._filer.entry(self._mark_path)
        if entry is None:
            entry = self._filer.small_file(content, {MARK: content})
            return await self._filer.create(self._mark_path, entry, only_if_absent=True)
        if self._marked(entry) >= number:
            return True
        expected = {MARK: entry.extended[MARK]}
        entry.content, entry.extended[MARK] = content, content
        entry.attributes.file_size = len(content)
        return await self._filer.update(self._mark_path, entry, expected)

    async def delete_below(self, number: int) -> None:
        """
        Take away what does not count any more.
        """
        while True:
            listed = await self._filer.entries(self.path, limit=_DELETED_AT_ONCE)
            gone = [
                entry.name for entry in listed if entry.name < name_of(number) and number_of(entry.name) is not None
            ]
            if not gone:
                return
            await together([self._delete(below(self.path, name)) for name in gone])

    async def _delete(self, path: str) -> None:
        await self._filer.delete(path)

    @property
    def _mark_path(self) -> str:
        return below(self.path, MARK)

    def _path(self, number: int) -> str:
        return below(self.path, name_of(number))

    def _marked(self, entry: Entry) -> int:
        found = entry.extended.get(MARK, b"")
        if not found.isdigit():
            raise ChainDamaged(f"{self._mark_path} says {found!r}, which is no number")
        return int(found)

    async def _object(self, entry: Entry, path: str, timeout_s: float) -> ChainObject:
        try:
            data = await self._filer.content_of(path, entry, timeout_s)
        except (RpcError, FilerRefused) as error:
            size = entry.attributes.file_size
            raise ChainDamaged(f"{path} is there, but its {size} bytes cannot be read: {error}") from error
        return decoded(data, path)
