"""
A filer: the entries of its folders. A small file has its bytes inline in its entry, if it was written through this
module; SeaweedFS's own tools put the bytes of small files into volumes, too.

Nothing may be created below a file: the filer would make a folder of it.

A conditional CreateEntry is not decided by the filer that is asked. SeaweedFS forwards it to the owner of the path in a
hash ring of all filers, and for some seconds after a filer has joined, the filers disagree about the owner: two of them
may then create one name. An ObjectTransaction without a key for that ring is decided by the filer that is asked. So
callers that always ask the same filer use `create_here` and `replace_here`.
"""

import time
from collections.abc import Awaitable, Callable, Mapping
from hashlib import md5
from typing import TypeVar

from twisted.internet.defer import CancelledError, Deferred

from kgateway.broker.seaweed.calls.addresses import ServerAddress
from kgateway.broker.seaweed.calls.breaker import GuardedChannel
from kgateway.broker.seaweed.calls.retries import FilerRefused, Precondition, Retries, no_precondition
from kgateway.broker.seaweed.filer.content import FileContents, Volumes
from kgateway.broker.seaweed.grpc.call_headers import Method, RequestT, ResponseT
from kgateway.broker.seaweed.grpc.channel import PeerCheck
from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.broker.seaweed.grpc.stream import Stream
from kgateway.broker.seaweed.protos.filer_pb2 import (
    AtomicRenameEntryRequest,
    AtomicRenameEntryResponse,
    CreateEntryRequest,
    CreateEntryResponse,
    DeleteEntryRequest,
    DeleteEntryResponse,
    Entry,
    FilerError,
    FuseAttributes,
    GetFilerConfigurationRequest,
    GetFilerConfigurationResponse,
    ListEntriesRequest,
    ListEntriesResponse,
    LookupDirectoryEntryRequest,
    LookupDirectoryEntryResponse,
    ObjectMutation,
    ObjectTransactionRequest,
    ObjectTransactionResponse,
    UpdateEntryRequest,
    UpdateEntryResponse,
    WriteCondition,
)


def split_path(path: str) -> tuple[str, str]:
    """
    The folder and the name in it. The root has an empty name.
    """
    folder, slash, name = path.rpartition("/")
    if not slash or not (path.startswith("/") and (name or path == "/")) or "//" in path:
        raise ValueError(f"{path!r} is not a path in a filer")
    return folder or "/", name


def path_below(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}"


def streamed(
    channel: GuardedChannel, method: Method[RequestT, ResponseT], request: RequestT, timeout: float
) -> Deferred[list[ResponseT]]:
    """
    All messages of a call that is answered by a stream and ends, such as a page of a listing.
    """
    messages: list[ResponseT] = []
    stream: Stream

    def received(message: bytes) -> None:
        messages.append(method.response.FromString(message))

    def ended(error: RpcError | None) -> None:
        if whole.called:
            return
        if error:
            whole.errback(error)
        else:
            whole.callback(messages)

    def cancel(whole: Deferred[list[ResponseT]]) -> None:
        whole.errback(CancelledError())
        stream.cancel()

    whole: Deferred[list[ResponseT]] = Deferred(cancel)
    stream = channel.open(method, received, ended, timeout)
    stream.send([request.SerializeToString()])
    stream.finish()
    return whole


T = TypeVar("T")

PAGE = 1_000  # entries; without a limit a filer uses its own, and does not say so

_LOOK_UP = Method(
    "/filer_pb.SeaweedFiler/LookupDirectoryEntry", LookupDirectoryEntryRequest, LookupDirectoryEntryResponse
)
_LIST = Method("/filer_pb.SeaweedFiler/ListEntries", ListEntriesRequest, ListEntriesResponse)
_CREATE = Method("/filer_pb.SeaweedFiler/CreateEntry", CreateEntryRequest, CreateEntryResponse)
_UPDATE = Method("/filer_pb.SeaweedFiler/UpdateEntry", UpdateEntryRequest, UpdateEntryResponse)
_TRANSACTION = Method("/filer_pb.SeaweedFiler/ObjectTransaction", ObjectTransactionRequest, ObjectTransactionResponse)
_DELETE = Method("/filer_pb.SeaweedFiler/DeleteEntry", DeleteEntryRequest, DeleteEntryResponse)
_RENAME = Method("/filer_pb.SeaweedFiler/AtomicRenameEntry", AtomicRenameEntryRequest, AtomicRenameEntryResponse)
_CONFIGURATION = Method(
    "/filer_pb.SeaweedFiler/GetFilerConfiguration", GetFilerConfigurationRequest, GetFilerConfigurationResponse
)

_ANSWER_S = 10.0
_ALL_S = 30.0  # with all attempts
_NOT_THERE = "no entry is found in filer store"
_EXISTS = (FilerError.ENTRY_ALREADY_EXISTS, FilerError.PRECONDITION_FAILED)
# `o_excl` would not do: it overwrites if the look-up of what is there fails.
_IF_ABSENT = WriteCondition(clauses=[WriteCondition.Clause(kind=WriteCondition.IF_NOT_EXISTS)])
_MODE = 0o644


def has_store(store: int) -> PeerCheck:
    """
    Checks that a filer still has a store: the address may be that of another filer by now, or the store be a new one.
    """

    def accept(found: GetFilerConfigurationResponse) -> None:
        if found.signature != store:
            raise RpcError(Status.UNAVAILABLE, f"the filer there has the store {found.signature} instead of {store}")

    return PeerCheck(_CONFIGURATION, GetFilerConfigurationRequest(), accept)


class Filer:
    """
    A client of one filer. A call that cannot be repeated is tried once: its failure does not say whether it was done.
    """

    def __init__(
        self,
        address: ServerAddress,
        channel: GuardedChannel,
        files: FileContents,
        volumes: Volumes,
        retries: Retries,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self.address = address
        self.channel = channel
        self.files = files
        self.volumes = volumes
        self._retries = retries
        self._now_s = now_s

    @property
    def is_out(self) -> bool:
        return self.channel.is_out

    def entry(self, path: str, timeout_s: float = _ALL_S) -> Deferred[Entry | None]:
        return self._repeated(lambda seconds: self._entry(path, seconds), timeout_s)

    def content(self, path: str) -> Deferred[bytes | None]:
        """
        The bytes of a small file, wherever they are; `None` if there is no file.
        """
        return Deferred.fromCoroutine(self._content(path))

    async def content_of(self, path: str, entry: Entry, timeout_s: float = _ALL_S) -> bytes:
        if is_inline(entry):
            return entry.content
        return await self.files.read(path, 0, entry.attributes.file_size, timeout_s)

    def store(self, timeout_s: float = _ANSWER_S) -> Deferred[int]:
        """
        The number by which SeaweedFS knows the filer's store: filers that share a store have the same.
        """
        found = self.channel.call(_CONFIGURATION, GetFilerConfigurationRequest(), timeout_s)
        return found.addCallback(lambda answer: answer.signature)

    def now_ns(self) -> Deferred[int]:
        """
        The time by the filer's clock: all that it has done before has an earlier time in its feed.
        """
        return self._repeated(self._now_ns)

    def entries(self, directory: str, prefix: str = "", after: str = "", limit: int = PAGE) -> Deferred[list[Entry]]:
        """
        At most `limit` entries of a folder, ordered by name, that follow the name `after`.
        """
        request = ListEntriesRequest(directory=directory, prefix=prefix, start_from_file_name=after, limit=limit)
        return self._repeated(lambda seconds: self._entries(request, seconds))

    def all_entries(self, directory: str, prefix: str = "") -> Deferred[list[Entry]]:
        return Deferred.fromCoroutine(self._all_entries(directory, prefix))

    def create(self, path: str, entry: Entry, *, only_if_absent: bool, timeout_s: float = _ANSWER_S) -> Deferred[bool]:
        """
        Create or overwrite the entry. Returns whether that was done. Tried once.
        """
        return Deferred.fromCoroutine(self._create(path, entry, only_if_absent, timeout_s))

    def create_here(self, path: str, entry: Entry, timeout_s: float = _ANSWER_S) -> Deferred[bool]:
        """
        Create the entry unless there is one, as this filer alone decides. Returns whether that was done. Tried once.
        """
        return Deferred.fromCoroutine(self._put(path, entry, _IF_ABSENT, timeout_s))

    def replace_here(self, path: str, entry: Entry, old: Entry, timeout_s: float = _ANSWER_S) -> Deferred[bool]:
        """
        Replace a `versioned_file` unless it has changed since it was read, as this filer alone decides. Returns whether
        that was done. Tried once.
        """
        unchanged = WriteCondition.Clause(kind=WriteCondition.IF_ETAG_MATCH, etags=[old.attributes.md5.hex()])
        return Deferred.fromCoroutine(self._put(path, entry, WriteCondition(clauses=[unchanged]), timeout_s))

    def update(self, path: str, entry: Entry) -> Deferred[None]:
        """
        Replace the entry, which exists. Tried once.
        """
        return Deferred.fromCoroutine(self._update(path, entry))

    def write(self, path: str, content: bytes, precondition: Precondition = no_precondition) -> Deferred[None]:
        """
        Write a small file, or replace its bytes.
        """
        entry = self.small_file(content)

        def attempt(seconds: float) -> Awaitable[object]:
            precondition()
            return self._create(path, entry, False, seconds)

        return self._repeated(attempt).addCallback(lambda _: None)

    def delete(
        self, path: str, *, recursive: bool = False, precondition: Precondition = no_precondition
    ) -> Deferred[None]:
        """
        Delete the entry, if it exists, and its bytes.
        """

        def attempt(seconds: float) -> Awaitable[None]:
            precondition()
            return self._delete(path, recursive, seconds)

        return self._repeated(attempt)

    def rename(self, path: str, new: str) -> Deferred[None]:
        """
        Rename an entry; one with the new name is replaced. Tried once.
        """
        return Deferred.fromCoroutine(self._rename(path, new))

    def small_file(self, content: bytes, extended: Mapping[str, bytes] | None = None) -> Entry:
        now = int(self._now_s())
        # Without its size the filer would serve an empty file by HTTP.
        attributes = FuseAttributes(file_size=len(content), file_mode=_MODE, mtime=now, crtime=now)
        return Entry(content=content, attributes=attributes, extended=extended)

    def versioned_file(self, content: bytes, extended: Mapping[str, bytes] | None = None) -> Entry:
        """
        A small file that `replace_here` can replace later: the filer tells versions apart by the MD5 of their bytes.
        """
        entry = self.small_file(content, extended)
        entry.attributes.md5 = md5(content, usedforsecurity=False).digest()
        return entry

    def _repeated(self, attempt: Callable[[float], Awaitable[T]], timeout_s: float = _ALL_S) -> Deferred[T]:
        return self._retries.run(lambda seconds: attempt(min(seconds, _ANSWER_S)), timeout_s)

    async def _entry(self, path: str, seconds: float) -> Entry | None:
        directory, name = split_path(path)
        request = LookupDirectoryEntryRequest(directory=directory, name=name)
        try:
            found = await self.channel.call(_LOOK_UP, request, seconds)
        except RpcError as error:
            if error.status is Status.UNKNOWN and _NOT_THERE in error.message:
                return None
            raise _of(path, error) from error
        return found.entry

    async def _content(self, path: str) -> bytes | None:
        entry = await self.entry(path)
        return await self.content_of(path, entry) if entry else None

    async def _now_ns(self, seconds: float) -> int:
        found = await self.channel.call(_LOOK_UP, LookupDirectoryEntryRequest(directory="/"), seconds)
        return found.log_ts_ns

    async def _entries(self, request: ListEntriesRequest, seconds: float) -> list[Entry]:
        try:
            found = await streamed(self.channel, _LIST, request, seconds)
        except RpcError as error:
            raise _of(request.directory, error) from error
        return [each.entry for each in found]

    async def _all_entries(self, directory: str, prefix: str) -> list[Entry]:
        found = page = await self.entries(directory, prefix)
        while len(page) == PAGE:
            page = await self.entries(directory, prefix, page[-1].name)
            found += page
        return found

    async def _create(self, path: str, entry: Entry, only_if_absent: bool, seconds: float) -> bool:
        directory, name = split_path(path)
        request = CreateEntryRequest(directory=directory, entry=entry, condition=_IF_ABSENT if only_if_absent else None)
        request.entry.name = name
        try:
            answer = await self.channel.call(_CREATE, request, seconds)
        except RpcError as error:
            raise _of(path, error) from error
        if only_if_absent and answer.error_code in _EXISTS:
            return False
        if answer.error:
            raise FilerRefused(path, answer.error)
        return True

    async def _put(self, path: str, entry: Entry, condition: WriteCondition, seconds: float) -> bool:
        directory, name = split_path(path)
        put = ObjectMutation(type=ObjectMutation.PUT, directory=directory, entry=entry)
        put.entry.name = name
        request = ObjectTransactionRequest(lock_key=path, condition=condition, mutations=[put])
        try:
            answer = await self.channel.call(_TRANSACTION, request, seconds)
        except RpcError as error:
            raise _of(path, error) from error
        if answer.error_code == FilerError.PRECONDITION_FAILED:
            return False
        if answer.error:
            raise FilerRefused(path, answer.error)
        return True

    async def _update(self, path: str, entry: Entry) -> None:
        directory, name = split_path(path)
        request = UpdateEntryRequest(directory=directory, entry=entry)
        request.entry.name = name
        try:
            await self.channel.call(_UPDATE, request, _ANSWER_S)
        except RpcError as error:
            raise _of(path, error) from error

    async def _delete(self, path: str, recursive: bool, seconds: float) -> None:
        directory, name = split_path(path)
        request = DeleteEntryRequest(directory=directory, name=name, is_recursive=recursive, is_delete_data=True)
        try:
            answer = await self.channel.call(_DELETE, request, seconds)
        except RpcError as error:
            raise _of(path, error) from error
        if answer.error:
            raise FilerRefused(path, answer.error)

    async def _rename(self, path: str, new: str) -> None:
        (old_directory, old_name), (new_directory, new_name) = split_path(path), split_path(new)
        request = AtomicRenameEntryRequest(
            old_directory=old_directory, old_name=old_name, new_directory=new_directory, new_name=new_name
        )
        try:
            await self.channel.call(_RENAME, request, _ANSWER_S)
        except RpcError as error:
            raise _of(path, error) from error


def is_inline(entry: Entry) -> bool:
    """
    Whether the bytes of a file are in its entry. SeaweedMQ's brokers find those of small files only there.
    """
    return bool(entry.content) or not entry.chunks


def _of(path: str, error: RpcError) -> Exception:
    """
    The error of a call, with its path. UNKNOWN is the filer's only status for errors of its own.
    """
    if error.status is Status.UNKNOWN:
        return FilerRefused(path, error.message)
    return RpcError(error.status, f"{path}: {error.message}")
