"""
The folder of a chain in a filer: its objects, each in a file of its own, and its mark.

    00000000000000000007    the object with the number 7, in twenty digits: names are in the order of numbers
    mark                    below the number in this file nothing counts, whatever there is

An object:

      0  u32        CRC-32C of all that follows
      4  u8         1, the format
      5  u8         0, or 1 for a fence, after which nothing counts
      6  u16        0
      8  u64        its number
     16  16 bytes   its nonce, by which a writer knows its own object
     32  16 bytes   the nonce of its predecessor; zeros for the first
     48             the payload, to the end

A small object is inline in its entry: it is there in a third of the time. But the filer keeps those bytes twice, and
once more after they are deleted, so a larger object is put onto a volume server first.

One filer decides a chain, because two filers may both create the same absent name.
"""

import os
from itertools import accumulate
from struct import Struct, error
from typing import NamedTuple

from crc32c import crc32c
from twisted.logger import Logger

from kgateway.broker.deferreds import gather
from kgateway.broker.seaweed.calls.retries import FilerRefused
from kgateway.broker.seaweed.filer.content import UploadedChunk
from kgateway.broker.seaweed.filer.filer import Filer, path_below
from kgateway.broker.seaweed.grpc.status import RpcError
from kgateway.broker.seaweed.protos.filer_pb2 import Entry

NONCE_BYTES = 16
NO_NONCE = bytes(NONCE_BYTES)

_HEADER = Struct(f">IBBHQ{NONCE_BYTES}s{NONCE_BYTES}s")
_CRC = Struct(">I")
_FORMAT = 1
_DIGITS = 20


class ChainDamaged(Exception):
    """
    An object of a chain cannot be read. The chain does not end there, because what the object holds was acknowledged.
    """


class ChainObject(NamedTuple):
    number: int
    nonce: bytes
    previous: bytes
    payload: bytes
    is_fence: bool = False

    @property
    def name(self) -> str:
        return name_of(self.number)

    def encoded(self) -> bytes:
        head = _HEADER.pack(0, _FORMAT, self.is_fence, 0, self.number, self.nonce, self.previous)
        covered = head[_CRC.size :]
        return b"".join((_CRC.pack(crc32c(self.payload, crc32c(covered))), covered, self.payload))


def decoded(data: bytes, path: str) -> ChainObject:
    """
    Decode an object; raises ChainDamaged if the bytes are no object, or that of another path.
    """
    try:
        crc, version, is_fence, _, number, nonce, previous = _HEADER.unpack_from(data)
    except error:
        raise ChainDamaged(f"{path} has {len(data)} bytes, fewer than any object of a chain") from None
    if crc32c(memoryview(data)[_CRC.size :]) != crc:
        raise ChainDamaged(f"{path}: its {len(data)} bytes are not those that were written: the checksum differs")
    if version != _FORMAT:
        raise ChainDamaged(f"{path} has format {version}, which a later version of kgateway may know")
    if number != number_of(path.rpartition("/")[2]):
        raise ChainDamaged(f"{path} has the content of {name_of(number)}")
    return ChainObject(number, nonce, previous, data[_HEADER.size :], bool(is_fence))


def new_nonce() -> bytes:
    return os.urandom(NONCE_BYTES)


def name_of(number: int) -> str:
    return f"{number:0{_DIGITS}d}"


def number_of(name: str) -> int | None:
    """
    The number in a file's name; `None` if the file is no object.
    """
    return int(name) if len(name) == _DIGITS and name.isascii() and name.isdecimal() else None


MARK = "mark"

_INLINE_MAX = 16 * 1024
_CREATE_S = 10.0
_READ_S = 30.0
_PAGE = 256  # entries
_PAGE_BYTES = 4 << 20
_DELETED_AT_ONCE = 16


class PreparedObject(NamedTuple):
    """
    An object whose creation can be repeated: it is the same each time.
    """

    chain_object: ChainObject
    entry: Entry
    uploaded: UploadedChunk | None


class ChainFolder:
    _log = Logger()

    def __init__(self, filer: Filer, path: str) -> None:
        self.path = path
        self._filer = filer

    async def prepare(self, chain_object: ChainObject) -> PreparedObject:
        data = chain_object.encoded()
        if len(data) <= _INLINE_MAX:
            return PreparedObject(chain_object, self._filer.small_file(data), None)
        uploaded = await self._filer.volumes.upload(self._path(chain_object.number), data)
        entry = self._filer.small_file(b"")
        entry.chunks.append(uploaded.chunk)
        entry.attributes.file_size = len(data)
        return PreparedObject(chain_object, entry, uploaded)

    async def create(self, prepared: PreparedObject, timeout_s: float) -> bool:
        """
        Create the object unless there is one with its number. Returns whether it was created; a failure does not tell.
        """
        path, seconds = self._path(prepared.chain_object.number), min(timeout_s, _CREATE_S)
        return await self._filer.create_here(path, prepared.entry, seconds)

    async def discard(self, prepared: PreparedObject) -> None:
        """
        Delete the bytes of an object that will never be there.
        """
        if prepared.uploaded:
            try:
                await self._filer.volumes.remove(prepared.uploaded)
            except (RpcError, FilerRefused) as error:  # the bytes take space, and do no harm
                self._log.info("{path}: bytes that are no longer needed are left: {error}", path=self.path, error=error)

    async def object(self, number: int, timeout_s: float = _READ_S) -> ChainObject | None:
        entry = await self._filer.entry(self._path(number), timeout_s)
        return await self._object(entry, self._path(number), timeout_s) if entry else None

    async def page(self, number: int) -> list[ChainObject]:
        """
        Some of the objects from this number on, without a gap; none if that one is not there.
        """
        after = name_of(number - 1) if number else ""
        listed = await self._filer.entries(self.path, after=after, limit=_PAGE)
        sizes = accumulate((entry.attributes.file_size for entry in listed), initial=0)
        wanted = [
            self._object(entry, path_below(self.path, entry.name), _READ_S)
            for (index, entry), before in zip(enumerate(listed), sizes, strict=False)
            if number_of(entry.name) == number + index and before <= _PAGE_BYTES
        ]
        if wanted:
            return await gather(wanted)
        # An object that a listing leaves out may be there all the same.
        missed = await self.object(number)
        return [missed] if missed else []

    async def mark(self) -> int:
        entry = await self._filer.entry(self._mark_path)
        return self._marked(entry) if entry else 0

    async def raise_mark(self, number: int) -> bool:
        """
        Let nothing below this number count. Returns whether that is so now. If not, another process has moved the mark
        meanwhile.
        """
        content = b"%d" % number
        raised, entry = self._filer.versioned_file(content, {MARK: content}), await self._filer.entry(self._mark_path)
        if entry is None:
            return await self._filer.create_here(self._mark_path, raised)
        return self._marked(entry) >= number or await self._filer.replace_here(self._mark_path, raised, entry)

    async def delete_below(self, number: int) -> None:
        while True:
            listed = await self._filer.entries(self.path, limit=_DELETED_AT_ONCE)
            gone = [
                entry.name for entry in listed if entry.name < name_of(number) and number_of(entry.name) is not None
            ]
            if not gone:
                return
            await gather([self._delete(path_below(self.path, name)) for name in gone])

    async def _delete(self, path: str) -> None:
        await self._filer.delete(path)

    @property
    def _mark_path(self) -> str:
        return path_below(self.path, MARK)

    def _path(self, number: int) -> str:
        return path_below(self.path, name_of(number))

    def _marked(self, entry: Entry) -> int:
        found = entry.extended.get(MARK, b"")
        if not found.isdigit():
            raise ChainDamaged(f"{self._mark_path} says {found!r}, which is not a number")
        return int(found)

    async def _object(self, entry: Entry, path: str, timeout_s: float) -> ChainObject:
        try:
            data = await self._filer.content_of(path, entry, timeout_s)
        except (RpcError, FilerRefused) as error:
            size = entry.attributes.file_size
            raise ChainDamaged(f"{path} is there, but its {size} bytes cannot be read: {error}") from error
        return decoded(data, path)
