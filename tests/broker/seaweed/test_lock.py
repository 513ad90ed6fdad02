"""
A lock in a real filer, by clocks that the test sets.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from twisted.internet.defer import Deferred, fail, gatherResults
from twisted.internet.task import Clock

from kgateway.broker.seaweed.calls.retries import FilerRefused
from kgateway.broker.seaweed.filer.filer import Filer
from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.broker.seaweed.lock import FilerLock
from kgateway.broker.seaweed.process_identity import own_identity
from kgateway.broker.seaweed.protos.filer_pb2 import Entry
from tests.broker.seaweed.cluster import done
from tests.broker.seaweed.real_reactor import wait

SECONDS = 6.0
Open = Callable[[str], FilerLock]

_identified = pytest.mark.skipif(own_identity() is None, reason="the system cannot identify processes")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(folder: str) -> str:
    return f"{folder}/lock"


@pytest.fixture
def lock(filer: Filer, path: str, clock: Clock) -> Open:
    """
    Opens the lock of the test, each time as another process would.
    """
    return lambda owner: FilerLock(filer, path, owner, SECONDS, clock)


@pytest.fixture
def owner() -> Iterator["subprocess.Popen[bytes]"]:
    """
    A process that a test ends.
    """
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def _lock_of(process: "subprocess.Popen[bytes]", lock: Open) -> FilerLock:
    """
    The lock as this process takes it.
    """
    found, own = lock("first"), own_identity()
    assert own
    with open(f"/proc/{process.pid}/stat") as stat:
        started = int(stat.read().rpartition(")")[2].split()[19])
    found._identity = own._replace(pid=process.pid, started=started)
    return found


def _taken(lock: FilerLock) -> Deferred[bool]:
    return Deferred.fromCoroutine(lock.take())


def _all(taken: list[Deferred[bool]]) -> list[bool]:
    answers: Deferred[list[bool]] = gatherResults(taken)
    return wait(answers)


def test_one_of_many_has_it(lock: Open) -> None:
    """
    The others learn which one.
    """
    locks = [lock(f"{number}") for number in range(10)]
    taken = _all([_taken(each) for each in locks])
    assert taken.count(True) == 1
    assert not any(done(each.take()) for each, has_it in zip(locks, taken, strict=True) if not has_it)
    assert {each.holder for each in locks} == {f"{taken.index(True)}"}


def test_it_expires_when_it_was_seen_unchanged_for_as_long_as_it_lasts(lock: Open, clock: Clock) -> None:
    """
    The time begins when another process first sees the version, whenever that was written.
    """
    first, second = lock("first"), lock("second")
    assert done(first.take())
    clock.advance(100)
    assert not done(second.take())
    assert second.waits_s == SECONDS
    clock.advance(SECONDS - 0.1)
    assert not done(second.take())
    clock.advance(second.waits_s)
    assert done(second.take())
    assert not done(first.take())
    assert (first.holder, second.holder) == ("second", "second")


def test_a_renewal_lets_the_others_wait_again(lock: Open, clock: Clock) -> None:
    """
    They wait until the owner has not renewed it for long.
    """
    first, second = lock("first"), lock("second")
    for _ in range(5):
        assert done(first.take())
        assert not done(second.take())
        clock.advance(SECONDS - 0.1)
    assert not done(second.take())


def test_a_filer_that_did_not_answer_lets_the_others_wait_again(
    lock: Open, filer: Filer, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    The owner could not renew it meanwhile.
    """
    first, second = lock("first"), lock("second")
    assert done(first.take())
    assert not done(second.take())
    clock.advance(SECONDS)
    with monkeypatch.context() as patched:
        patched.setattr(filer, "entry", lambda *_: fail(RpcError(Status.DEADLINE_EXCEEDED, "it hangs")))
        with pytest.raises(RpcError, match="it hangs"):
            done(second.take())
    assert not done(second.take())
    assert done(first.take())


def test_the_time_of_an_answer_does_not_count(
    lock: Open, filer: Filer, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    The owner, too, could renew the lock only when the filer answered again.
    """
    first, second = lock("first"), lock("second")
    assert done(first.take())
    assert not done(second.take())
    entry = filer.entry

    async def slow(path: str, timeout_s: float) -> Entry | None:
        found = await entry(path, timeout_s)
        clock.advance(SECONDS)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(filer, "entry", slow)
        assert not done(second.take())
    assert done(first.take())
    assert not done(second.take())


def test_an_owner_that_was_late_still_has_it_unless_another_took_it(lock: Open, clock: Clock) -> None:
    """
    Nobody else has had it meanwhile.
    """
    first, second = lock("first"), lock("second")
    assert done(first.take())
    assert not done(second.take())
    clock.advance(SECONDS)
    assert done(first.take())
    assert not done(second.take())


def test_of_the_owner_and_another_one_wins(lock: Open, clock: Clock) -> None:
    """
    Both ask when it has just expired.
    """
    for _ in range(20):
        first, second = lock("first"), lock("second")
        done(first.take())
        done(second.take())
        clock.advance(SECONDS)
        assert sorted(_all([_taken(first), _taken(second)])) == [False, True]
        for each in (first, second):
            done(each.give_back())


def test_it_is_free_at_once_when_it_is_given_back(lock: Open) -> None:
    """
    A process that has lost it gives nothing back.
    """
    first, second, third = lock("first"), lock("second"), lock("third")
    assert done(first.take())
    done(first.give_back())
    assert done(second.take())
    done(first.give_back())
    assert not done(third.take())
    assert third.holder == "second"


@_identified
def test_the_lock_of_a_process_that_has_ended_is_taken_at_once(lock: Open, owner: "subprocess.Popen[bytes]") -> None:
    """
    Whoever has seen the lock notices the end without asking the filer.
    """
    first, second = _lock_of(owner, lock), lock("second")
    assert done(first.take())
    assert not done(second.take())
    assert not second.holder_has_ended
    owner.kill()
    owner.wait()
    assert second.holder_has_ended
    assert done(second.take())
    assert not done(first.take())


@_identified
def test_one_that_starts_later_takes_the_lock_of_a_process_that_has_ended(
    lock: Open, owner: "subprocess.Popen[bytes]"
) -> None:
    """
    It may be the next start of the same gateway.
    """
    assert done(_lock_of(owner, lock).take())
    owner.kill()
    owner.wait()
    assert done(lock("second").take())


@_identified
def test_a_last_renewal_of_a_process_that_has_ended_only_delays_the_next(
    lock: Open, filer: Filer, owner: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    The filer applies it after the other process has read the file. One that comes after that is refused.
    """
    first, second = _lock_of(owner, lock), lock("second")
    assert done(first.take())
    owner.kill()
    owner.wait()
    replace = filer.replace_here

    async def after_a_renewal(path: str, entry: Entry, old: Entry, timeout_s: float) -> bool:
        late = filer.versioned_file(old.content.replace(b'"number": ', b'"number": 9'))
        assert await replace(path, late, old, timeout_s)
        return await replace(path, entry, old, timeout_s)

    with monkeypatch.context() as patched:
        patched.setattr(filer, "replace_here", after_a_renewal)
        assert not done(second.take())
    assert second.holder_has_ended
    assert done(second.take())


@_identified
def test_nothing_is_proven_of_a_holder_while_the_filer_does_not_answer(
    lock: Open, filer: Filer, owner: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Another process may have the lock by now.
    """
    first, second = _lock_of(owner, lock), lock("second")
    assert done(first.take())
    assert not done(second.take())
    owner.kill()
    owner.wait()
    with monkeypatch.context() as patched:
        patched.setattr(filer, "entry", lambda *_: fail(RpcError(Status.DEADLINE_EXCEEDED, "it hangs")))
        with pytest.raises(RpcError, match="it hangs"):
            done(second.take())
    assert not second.holder_has_ended
    assert done(second.take())


def test_a_lock_that_came_and_went_is_lost(lock: Open, clock: Clock) -> None:
    """
    Another process had it meanwhile, although it is free again. Afterwards it can be taken like any other.
    """
    first, second = lock("first"), lock("second")
    assert done(first.take())
    assert not done(second.take())
    clock.advance(SECONDS)
    assert done(second.take())
    done(second.give_back())
    assert not done(first.take())
    assert done(first.take())


def test_a_lock_whose_file_is_gone_is_lost(lock: Open, filer: Filer, path: str) -> None:
    """
    Another process may have had it meanwhile.
    """
    first = lock("first")
    assert done(first.take())
    wait(filer.delete(path))
    assert not done(first.take())


@pytest.mark.parametrize("is_done", [True, False])
def test_a_renewal_that_is_not_answered_is_tried_again(
    lock: Open, filer: Filer, monkeypatch: pytest.MonkeyPatch, is_done: bool
) -> None:
    """
    Whether it was done or not, the lock is still ours.
    """
    first = lock("first")
    assert done(first.take())
    replace = filer.replace_here

    async def unanswered(path: str, entry: Entry, old: Entry, timeout_s: float) -> bool:
        if is_done:
            await replace(path, entry, old, timeout_s)
        raise RpcError(Status.UNAVAILABLE, "the answer is lost")

    with monkeypatch.context() as patched:
        patched.setattr(filer, "replace_here", unanswered)
        with pytest.raises(RpcError, match="the answer is lost"):
            done(first.take())
    assert done(first.take())
    assert not done(lock("second").take())


def test_a_renewal_that_comes_late_is_not_taken_for_another_process(
    lock: Open, filer: Filer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    The filer hung, and applied the renewal that was given up after the next one had read the file.
    """
    first = lock("first")
    assert done(first.take())
    _renew_late(first, filer, monkeypatch)
    assert done(first.take())


def test_a_lock_that_came_and_went_after_a_late_renewal_is_lost(
    lock: Open, filer: Filer, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A renewal that came late leaves the owner its lock, which another process has had since.
    """
    first, second = lock("first"), lock("second")
    assert done(first.take())
    _renew_late(first, filer, monkeypatch)
    assert not done(second.take())
    clock.advance(SECONDS)
    assert done(second.take())
    done(second.give_back())
    assert not done(first.take())


def _renew_late(lock: FilerLock, filer: Filer, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Renew the lock while a renewal that was given up is applied.
    """
    replace = filer.replace_here

    async def after_a_late_one(path: str, entry: Entry, old: Entry, timeout_s: float) -> bool:
        late = filer.versioned_file(entry.content.replace(b'"number": ', b'"number": 9'))
        await replace(path, late, old, timeout_s)
        return await replace(path, entry, old, timeout_s)

    with monkeypatch.context() as patched:
        patched.setattr(filer, "replace_here", after_a_late_one)
        with pytest.raises(RpcError, match="came late"):
            done(lock.take())


@pytest.mark.parametrize("content", [b"", b"[]", b'{"strange": 1}', b'{"identity": [1]}'])
def test_a_file_that_is_no_lock_is_refused(lock: Open, filer: Filer, path: str, content: bytes) -> None:
    """
    The message names it.
    """
    wait(filer.write(path, content))
    with pytest.raises(FilerRefused, match=f"{path}: it is not the file of a lock"):
        done(lock("first").take())
