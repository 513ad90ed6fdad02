"""
Changes applied one after the other.
"""

import gc
from collections.abc import Callable
from weakref import ref

from twisted.internet.defer import Deferred

from kgateway.broker.topic_changes import ChangeQueue
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.broker.behaviour import refusal, result


def work(on: Deferred[None], begun: list[str], name: str = "") -> Callable[[], Deferred[None]]:
    """
    Work that records its name and waits for `on`.
    """

    def begin() -> Deferred[None]:
        begun.append(name)
        return on

    return begin


def test_changes_of_one_topic_wait_for_each_other() -> None:
    """
    They also run after a failure; changes of other topics do not wait.
    """
    in_order, begun = ChangeQueue(), list[str]()
    ends = [Deferred[None]() for _ in range(3)]
    first = in_order.do("a", work(ends[0], begun, "first"))
    second = in_order.do("a", work(ends[1], begun, "second"))
    other = in_order.do("b", work(ends[2], begun, "other"))
    assert begun == ["first", "other"]
    ends[2].callback(None)
    result(other)
    ends[0].errback(KafkaError(ErrorCode.INVALID_CONFIG, "no"))
    assert begun == ["first", "other", "second"]
    assert refusal(lambda: first).code is ErrorCode.INVALID_CONFIG
    assert not second.called
    ends[1].callback(None)
    result(second)


def test_cancelled_changes_are_still_made() -> None:
    """
    The next ones follow.
    """
    in_order, begun, end = ChangeQueue(), list[str](), Deferred[None]()
    first, second = (in_order.do("a", work(end, begun)) for _ in range(2))
    first.addErrback(lambda _: None)
    first.cancel()
    end.callback(None)
    result(second)
    assert begun == ["", ""]


def test_stop_waits_for_all_changes() -> None:
    """
    Accepted changes are made, and no further one is accepted.
    """
    in_order, ends = ChangeQueue(), [Deferred[None](), Deferred[None]()]
    for name, end in zip("ab", ends, strict=True):
        in_order.do(name, work(end, []))
    stopped = Deferred.fromCoroutine(in_order.stop())
    assert refusal(lambda: in_order.do("c", work(ends[0], []))).code is ErrorCode.KAFKA_STORAGE_ERROR
    for end in ends:
        assert not stopped.called
        end.callback(None)
    result(stopped)
    result(Deferred.fromCoroutine(in_order.stop()))


def test_stop_without_changes_is_immediate() -> None:
    in_order, end = ChangeQueue(), Deferred[None]()
    in_order.do("a", work(end, []))
    end.callback(None)
    result(Deferred.fromCoroutine(in_order.stop()))


def test_refusals_do_not_keep_arguments_alive() -> None:
    """
    A reference to the refusal keeps nothing of the refused change.
    """

    class Large:
        pass

    def refuse() -> Deferred[None]:
        large = Large()
        held.append(ref(large))
        raise KafkaError(ErrorCode.INVALID_CONFIG, "no")

    held = list[ref[Large]]()
    kept = refusal(lambda: ChangeQueue().do("a", refuse))
    gc.collect()
    assert kept.code is ErrorCode.INVALID_CONFIG
    assert held[0]() is None


def test_many_changes_are_all_made() -> None:
    in_order, end, done = ChangeQueue(), Deferred[None](), list[object]()
    in_order.do("a", work(end, []))
    for _ in range(5_000):
        in_order.do("a", _at_once).addCallback(done.append)
    end.callback(None)
    assert len(done) == 5_000


async def _at_once() -> None:
    pass
