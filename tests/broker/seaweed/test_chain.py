"""
Chains on a real filer: each number has one writer, however many want it, and an acknowledged object is never lost.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.threads import deferToThread

from kgateway.broker.seaweed.calls.retries import FilerRefused
from kgateway.broker.seaweed.chain.appender import ChainLost
from kgateway.broker.seaweed.chain.chain import Chain, ChainForgotten
from kgateway.broker.seaweed.chain.chain_folder import MARK, ChainDamaged, ChainObject, PreparedObject, name_of
from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweed.filer.content import UploadedChunk
from kgateway.broker.seaweed.filer.filer import Filer
from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.broker.seaweed.protos.filer_pb2 import Entry, FileChunk
from tests.broker.seaweed.cluster import done
from tests.broker.seaweed.real_reactor import reactor, wait

Open = Callable[..., Chain]
_LARGE = os.urandom(1 << 20)


@pytest.fixture
def chain(seaweed: SeaweedCluster, filer: Filer, folder: str) -> Open:
    """
    Opens the chain of the test, each time as another process would.
    """
    return lambda **options: Chain(filer, folder, seaweed.retries, **options)


def _caught_up(chain: Chain) -> list[ChainObject]:
    found: list[ChainObject] = []
    wait(chain.catch_up(found.append))
    return found


def _payloads(found: list[ChainObject]) -> list[bytes]:
    return [each.payload for each in found]


def _append(chain: Chain, *payloads: bytes) -> list[int]:
    """
    The numbers, or the first failure.
    """
    outcomes = _outcomes([chain.append(payload) for payload in payloads])
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome
    return outcomes


def _outcomes(waiting: list[Deferred[int]]) -> list[Any]:
    ended: list[Deferred[Any]] = [each.addErrback(lambda failure: failure.value) for each in waiting]
    return wait(gatherResults(ended))


def test_what_was_appended_is_read_in_order(chain: Open) -> None:
    """
    Objects may be small or large.
    """
    payloads = [b"first", b"", _LARGE, b"x" * 17_000, b"last"]
    assert _append(chain(), *payloads) == [0, 1, 2, 3, 4]
    reader = chain()
    assert _payloads(_caught_up(reader)) == payloads
    assert _caught_up(reader) == []


def test_what_is_small_stands_in_its_entry(chain: Open, filer: Filer, folder: str) -> None:
    """
    Larger bytes are on a volume server.
    """
    _append(chain(), b"small", _LARGE)
    small, large = wait(filer.entries(folder))
    assert (len(small.chunks), len(large.chunks)) == (0, 1)
    assert not large.content


def test_a_chain_is_longer_than_a_page(chain: Open) -> None:
    """
    It has more objects than a page, or more bytes.
    """
    payloads = [b"%d" % number for number in range(600)]
    payloads += [_LARGE] * 10
    _append(chain(), *payloads)
    assert _payloads(_caught_up(chain())) == payloads
    assert len(wait(chain().read(0))) < 600
    assert 0 < len(wait(chain().read(600))) < 10


def test_who_has_caught_up_appends_behind(chain: Open) -> None:
    """
    The objects follow one another whichever process wrote them.
    """
    _append(chain(), b"a", b"b")
    second = chain()
    _caught_up(second)
    assert _append(second, b"c") == [2]
    assert _payloads(_caught_up(chain())) == [b"a", b"b", b"c"]


def test_acknowledgements_are_in_order(chain: Open) -> None:
    """
    A large object takes longer than the small ones after it.
    """
    told: list[int] = []
    writer = chain()
    appends = [writer.append(payload).addCallback(told.append) for payload in (_LARGE, b"a", _LARGE, b"b")]
    wait(gatherResults(appends))
    assert told == [0, 1, 2, 3]


def test_racing_writers_have_each_number_once(chain: Open) -> None:
    """
    A writer that loses a number learns who won it, reads on and tries again.
    """
    won: dict[int, bytes] = {}
    winners: list[tuple[bytes, ChainObject | None]] = []

    async def write(writer: Chain, name: bytes) -> None:
        for number in range(20):
            payload = b"%s-%d" % (name, number)
            while True:
                await writer.catch_up(lambda found: None)
                try:
                    won[await writer.append(payload)] = payload
                    break
                except ChainLost as lost:
                    winners.append((name, lost.winner))

    writers = [Deferred.fromCoroutine(write(chain(shared=True), b"%d" % number)) for number in range(5)]
    wait(gatherResults(writers), 60)
    found = _caught_up(chain())
    assert {each.number: each.payload for each in found} == won
    assert len(found) == 100
    assert winners
    for loser, winner in winners:
        assert winner
        assert winner == found[winner.number]
        assert not winner.payload.startswith(loser)


def test_what_is_lost_leaves_no_bytes_behind(chain: Open, filer: Filer, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The bytes were put onto a volume server before the number was lost.
    """
    uploads: list[UploadedChunk] = []
    upload = filer.volumes.upload

    async def noting(path: str, data: bytes) -> UploadedChunk:
        uploads.append(await upload(path, data))
        return uploads[-1]

    monkeypatch.setattr(filer.volumes, "upload", noting)
    first, second = chain(shared=True), chain(shared=True)
    _append(first, _LARGE)
    with pytest.raises(ChainLost):
        _append(second, _LARGE)
    winner, loser = uploads
    with pytest.raises(FilerRefused, match="HTTP 404"):
        wait(filer.volumes.remove(loser))
    wait(filer.volumes.remove(winner))


def test_behind_a_fence_nothing_counts(chain: Open) -> None:
    """
    The old writer learns who made the fence, and the chain ends with what its successor has read.
    """
    writer, heir = chain(), chain()
    _append(writer, b"a", b"b")
    found: list[ChainObject] = []
    fence = wait(heir.end(b"the heir", found.append))
    assert _payloads(found) == [b"a", b"b"]
    assert (fence.number, fence.payload, fence.is_fence) == (2, b"the heir", True)
    for outcome in _outcomes([writer.append(payload) for payload in (b"c", b"d", b"e")]):
        assert isinstance(outcome, ChainLost)
        assert outcome.winner == fence
    reader = chain()
    assert _payloads(_caught_up(reader)) == [b"a", b"b"]
    assert reader.fence == fence
    assert [each.number for each in wait(reader.read(0))] == [0, 1, 2]
    with pytest.raises(ChainLost, match="the heir"):
        _append(reader, b"f")


def test_a_chain_has_one_fence(chain: Open) -> None:
    """
    Later successors find the fence of the first.
    """
    _append(chain(), b"a")
    fences = wait(gatherResults([chain().end(b"%d" % number, lambda found: None) for number in range(5)]))
    assert len({*fences}) == 1
    assert fences[0].number == 1


def test_an_heir_overtakes_a_writer_that_goes_on(chain: Open) -> None:
    """
    The successor has read exactly the objects that were acknowledged to the writer.
    """
    acknowledged: list[bytes] = []
    read: list[ChainObject] = []
    writer = chain()

    async def write(name: int) -> None:
        for number in range(10_000):
            payload = b"%d-%d" % (name, number)
            await writer.append(payload)
            acknowledged.append(payload)

    async def overtake() -> ChainObject:
        writing = [Deferred.fromCoroutine(write(name)) for name in range(8)]
        while len(acknowledged) < 50:
            await writer.mark()
        fence = await chain().end(b"heir", read.append)
        for each in writing:
            with pytest.raises(ChainLost):
                await each
        return fence

    fence = done(overtake())
    assert _payloads(read) == acknowledged
    assert fence.number == len(acknowledged)


def test_a_writer_that_is_always_faster_comes_to_an_end(chain: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The writer takes each number a moment before its successor does.
    """
    writer, heir = chain(), chain()
    _append(writer, b"a")
    create = heir._folder.create

    async def slower(prepared: PreparedObject, timeout_s: float) -> bool:
        if prepared.chain_object.number == writer.next_number:
            with suppress(ChainLost):
                await writer.append(b"faster")
        return await create(prepared, timeout_s)

    monkeypatch.setattr(heir._folder, "create", slower)
    read: list[ChainObject] = []
    fence = wait(heir.end(b"heir", read.append), 10)
    assert fence.number == len(read)
    assert _payloads(read) == [b"a"] + [b"faster"] * (len(read) - 1)
    with pytest.raises(ChainLost, match="heir"):
        _append(writer, b"more")


def test_a_fence_ahead_is_where_its_writer_ends(chain: Open) -> None:
    """
    A successor that was too slow has made the fence ahead, and has ended since.
    """
    writer, slow = chain(), chain()
    _append(writer, b"a")
    _caught_up(slow)
    assert done(slow._fenced(3, b"ahead"))
    outcomes = _outcomes([writer.append(b"%d" % number) for number in range(5)])
    assert outcomes[:3] == [1, 2, 3]
    for outcome in outcomes[3:]:
        assert isinstance(outcome, ChainLost)
    read: list[ChainObject] = []
    fence = wait(chain().end(b"heir", read.append))
    assert (fence.number, fence.payload) == (4, b"ahead")
    assert _payloads(read) == [b"a", b"0", b"1", b"2"]


def test_before_a_fence_ahead_a_writer_that_has_gone_gets_one_of_its_own(chain: Open) -> None:
    """
    The writer might return, and append up to the other fence.
    """
    writer, slow = chain(), chain()
    _append(writer, b"a")
    _caught_up(slow)
    assert done(slow._fenced(3, b"ahead"))
    assert wait(chain().end(b"heir", lambda found: None)).number == 1
    with pytest.raises(ChainLost, match="heir"):
        _append(writer, b"b")


def test_a_writer_that_was_overtaken_appends_nothing_more(chain: Open) -> None:
    """
    Reading on does not help it, because others have its numbers now.
    """
    writer = chain()
    wait(chain().end(b"heir", lambda found: None))
    for _ in range(2):
        with pytest.raises(ChainLost):
            _append(writer, b"a")
    with pytest.raises(ChainLost):
        _caught_up(writer)


def test_who_confirms_has_all_there_is(chain: Open) -> None:
    """
    A writer can confirm its own chain, also while it appends, unless another one was faster.
    """
    writer = chain()
    wait(writer.confirm())
    waiting = [writer.append(b"%d" % number) for number in range(20)]
    confirmed = [writer.confirm() for _ in range(20)]
    wait(gatherResults(confirmed))
    wait(gatherResults(waiting))
    wait(writer.confirm())
    wait(chain().end(b"heir", lambda found: None))
    with pytest.raises(ChainLost, match="heir"):
        wait(writer.confirm())


def test_what_is_below_the_mark_is_forgotten(chain: Open, filer: Filer, folder: str) -> None:
    """
    The mark is raised first. Later readers begin there, and one that had read further continues.
    """
    writer, reader = chain(), chain()
    _append(writer, *(b"%d" % number for number in range(50)))
    _caught_up(reader)
    wait(writer.forget(40))
    assert [entry.name for entry in wait(filer.entries(folder))] == [*map(name_of, range(40, 50)), MARK]
    late = chain()
    assert _payloads(_caught_up(late)) == [b"%d" % number for number in range(40, 50)]
    with pytest.raises(ChainForgotten, match="40"):
        wait(late.read(39))
    assert wait(late.mark()) == 40
    _append(writer, b"50")
    assert _payloads(_caught_up(reader)) == [b"50"]


def test_the_last_object_is_never_forgotten(chain: Open) -> None:
    """
    The next one names it as its predecessor.
    """
    writer = chain()
    _append(writer, b"a", b"b")
    wait(writer.forget(100))
    assert wait(writer.mark()) == 1
    other = chain()
    assert _payloads(_caught_up(other)) == [b"b"]
    assert _append(other, b"c") == [2]
    assert _payloads(_caught_up(chain())) == [b"b", b"c"]


def test_the_mark_never_goes_down(chain: Open) -> None:
    """
    Several processes may move it at the same time.
    """
    chains = [chain() for _ in range(5)]
    _append(chains[0], *(b"%d" % number for number in range(30)))
    for each in chains[1:]:
        _caught_up(each)
    wait(gatherResults([each.forget(5 * (index + 1)) for index, each in enumerate(chains)]))
    assert wait(chain().mark()) == 25
    wait(chains[0].forget(3))
    assert wait(chain().mark()) == 25


def test_a_writer_that_slept_wins_nothing_below_the_mark(chain: Open) -> None:
    """
    The names of deleted objects can be created again, but do not count.
    """
    writer, sleeper, heir = chain(shared=True), chain(shared=True), chain()
    for payload in (b"a", b"b", b"c", b"d"):
        _append(writer, payload)
    wait(writer.forget(3))
    with pytest.raises(ChainLost, match="its mark has passed the number"):
        _append(sleeper, b"late")
    late: list[ChainObject] = []
    assert wait(heir.end(b"fence", late.append)).number == 4
    assert _payloads(late) == [b"d"]


def test_one_who_has_slept_reads_on_from_the_mark(chain: Open) -> None:
    """
    The objects it has missed are deleted.
    """
    writer, sleeper = chain(shared=True), chain(shared=True)
    for payload in (b"a", b"b", b"c", b"d"):
        _append(writer, payload)
    wait(writer.forget(3))
    assert _payloads(_caught_up(sleeper)) == [b"d"]
    assert _append(sleeper, b"e") == [4]


def test_a_lower_mark_that_comes_late_does_not_count(
    chain: Open, filer: Filer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Another process raised the mark between the look and the change.
    """
    writer, faster = chain(), chain()
    _append(writer, *(b"%d" % number for number in range(30)))
    _caught_up(faster)
    wait(writer.forget(1))
    replace = filer.replace_here

    async def late(path: str, entry: Entry, old: Entry) -> bool:
        monkeypatch.undo()
        await faster.forget(20)
        return await replace(path, entry, old)

    monkeypatch.setattr(filer, "replace_here", late)
    wait(writer.forget(10))
    assert wait(chain().mark()) == 20


@pytest.mark.parametrize("is_done", [True, False])
@pytest.mark.parametrize("payload", [b"small", _LARGE])
def test_a_create_that_is_not_answered_is_repeated_unchanged(
    chain: Open, filer: Filer, monkeypatch: pytest.MonkeyPatch, is_done: bool, payload: bytes
) -> None:
    """
    It may have succeeded, and the object that is there is then recognized.
    """
    create, entries = filer.create_here, []

    async def unanswered(path: str, entry: Entry, timeout_s: float) -> bool:
        entries.append(entry)
        if is_done or len(entries) > 2:
            await create(path, entry, timeout_s)
        raise RpcError(Status.UNAVAILABLE, "the answer is lost")

    monkeypatch.setattr(filer, "create_here", unanswered)
    writer = chain()
    assert _append(writer, payload) == [0]
    assert len(entries) == (1 if is_done else 3)
    assert all(entry == entries[0] for entry in entries)
    monkeypatch.undo()
    assert _append(writer, b"more") == [1]
    assert _payloads(_caught_up(chain())) == [payload, b"more"]


def test_a_checksum_that_is_another_is_an_outage(chain: Open, filer: Filer, folder: str) -> None:
    """
    The chain does not end there.
    """
    _append(chain(), b"a", b"payload", b"c")
    path = f"{folder}/{name_of(1)}"
    entry = wait(filer.entry(path))
    assert entry
    entry.content = entry.content.replace(b"payload", b"paylord")
    wait(filer.update(path, entry))
    with pytest.raises(ChainDamaged, match=f"{path}: .*checksum"):
        _caught_up(chain())
    with pytest.raises(ChainDamaged, match=f"{path}: .*checksum"):
        wait(chain().end(b"fence", lambda found: None))


def test_bytes_that_are_missing_are_an_outage(
    chain: Open, filer: Filer, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    The entry of the object is still there.
    """
    monkeypatch.setattr("kgateway.broker.seaweed.chain.chain_folder._READ_S", 1)
    _append(chain(), b"a")
    path = f"{folder}/{name_of(1)}"
    entry = filer.small_file(b"")
    entry.chunks.append(FileChunk(file_id="4,01f693c959", size=1_000, modified_ts_ns=1))
    entry.attributes.file_size = 1_000
    wait(filer.create(path, entry, only_if_absent=True))
    with pytest.raises(ChainDamaged, match=f"{path} is there, but its 1000 bytes cannot be read"):
        _caught_up(chain())


def test_a_mark_without_its_object_is_an_outage(chain: Open, filer: Filer, folder: str) -> None:
    """
    The mark says that the object was there.
    """
    writer = chain()
    _append(writer, b"a", b"b")
    wait(writer.forget(1))
    wait(filer.delete(f"{folder}/{name_of(1)}"))
    with pytest.raises(ChainDamaged, match="its mark says 1"):
        _caught_up(chain())


def test_objects_that_do_not_follow_each_other_are_an_outage(
    chain: Open, seaweed: SeaweedCluster, filer: Filer, folder: str
) -> None:
    """
    One was replaced by a whole object of another chain.
    """
    _append(chain(), b"a", b"b")
    alien = Chain(filer, f"{folder}-other", seaweed.retries)
    _append(alien, b"x", b"y")
    entry = wait(filer.entry(f"{folder}-other/{name_of(1)}"))
    assert entry
    wait(filer.create(f"{folder}/{name_of(1)}", entry, only_if_absent=False))
    with pytest.raises(ChainDamaged, match="number 1 does not follow"):
        _caught_up(chain())


def test_a_gap_ends_what_counts(chain: Open, filer: Filer, folder: str) -> None:
    """
    Objects after it were never acknowledged.
    """
    writer = chain()
    _append(writer, b"a", b"b", b"c")
    wait(filer.delete(f"{folder}/{name_of(1)}"))
    assert _payloads(_caught_up(chain())) == [b"a"]


def test_an_append_that_is_not_known_of_in_time_fails_with_all_behind(cluster: DevCluster, chain: Open) -> None:
    """
    The chain must be read again before it takes more.
    """
    writer = chain(patience_s=0.5)
    _append(writer, b"a")
    cluster.server.kill()
    for outcome in _outcomes([writer.append(b"%d" % number) for number in range(10)]):
        assert isinstance(outcome, RpcError)
    with pytest.raises(RpcError):
        _append(writer, b"b")


@pytest.mark.parametrize("size", [100, 100_000])
def test_nothing_is_lost_or_doubled_when_the_filer_is_killed(cluster: DevCluster, chain: Open, size: int) -> None:
    """
    The filer is killed twice amid many appends. Each acknowledged object is there once, at its number, in order.
    """
    writer = chain()
    told: dict[int, bytes] = {}
    sent: list[bytes] = []

    async def write() -> None:
        while not stopping:
            payload = b"%020d" % len(sent) + os.urandom(size)
            sent.append(payload)
            told[await writer.append(payload)] = payload

    def crash() -> None:
        cluster.server.kill()
        cluster.start_server()

    async def all_of_it() -> None:
        writing = [Deferred.fromCoroutine(write()) for _ in range(8)]
        for wanted in (100, 200):
            while len(told) < wanted:
                await _passed(0.01)
            await deferToThread(crash)
        while len(told) < 300:
            await _passed(0.01)
        stopping.append(True)
        await gatherResults(writing)

    stopping: list[bool] = []
    done(all_of_it(), 60)
    found = _caught_up(chain())
    assert {each.number: each.payload for each in found} == told
    assert len({each.payload for each in found}) == len(found) == len(sent)


def _passed(seconds: float) -> Deferred[None]:
    passed: Deferred[None] = Deferred()
    reactor.callLater(seconds, passed.callback, None)
    return passed
