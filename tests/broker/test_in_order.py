"""
Work that is done one after the other.
"""

import gc
from collections.abc import Callable
from weakref import ref

from twisted.internet.defer import Deferred

from kgateway.broker.in_order import InOrder
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.broker.behaviour import refusal, result


def work(on: Deferred[None], begun: list[str], name: str = "") -> Callable[[], Deferred[None]]:
    """
    What is done when this fires.
    """

    def begin() -> Deferred[None]:
        begun.append(name)
        return on

    return begin


def test_one_after_the_other() -> None:
    """
    What is about the same thing waits, whatever became of the work before; what is about something else does not.
    """
    in_order, begun = InOrder(), list[str]()
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


def test_who_waits_no_more() -> None:
    """
    The work is done all the same, and what comes behind it.
    """
    in_order, begun, end = InOrder(), list[str](), Deferred[None]()
    first, second = (in_order.do("a", work(end, begun)) for _ in range(2))
    first.addErrback(lambda _: None)
    first.cancel()
    end.callback(None)
    result(second)
    assert begun == ["", ""]


def test_a_stop_waits() -> None:
    """
    What was taken is done, for everything, and nothing more is taken.
    """
    in_order, ends = InOrder(), [Deferred[None](), Deferred[None]()]
    for name, end in zip("ab", ends, strict=True):
        in_order.do(name, work(end, []))
    stopped = Deferred.fromCoroutine(in_order.stop())
    assert refusal(lambda: in_order.do("c", work(ends[0], []))).code is ErrorCode.KAFKA_STORAGE_ERROR
    for end in ends:
        assert not stopped.called
        end.callback(None)
    result(stopped)
    result(Deferred.fromCoroutine(in_order.stop()))


def test_a_stop_with_nothing_to_do() -> None:
    """
    It is over at once.
    """
    in_order, end = InOrder(), Deferred[None]()
    in_order.do("a", work(end, []))
    end.callback(None)
    result(Deferred.fromCoroutine(in_order.stop()))


def test_refusals_hold_nothing() -> None:
    """
    Who keeps a refusal does not keep what was refused.
    """

    class Large:
        pass

    def refuse() -> Deferred[None]:
        large = Large()
        held.append(ref(large))
        raise KafkaError(ErrorCode.INVALID_CONFIG, "no")

    held = list[ref[Large]]()
    kept = refusal(lambda: InOrder().do("a", refuse))
    gc.collect()
    assert kept.code is ErrorCode.INVALID_CONFIG
    assert held[0]() is None


def test_many() -> None:
    """
    However many wait, each is done.
    """
    in_order, end, done = InOrder(), Deferred[None](), list[object]()
    in_order.do("a", work(end, []))
    for _ in range(5_000):
        in_order.do("a", _at_once).addCallback(done.append)
    end.callback(None)
    assert len(done) == 5_000


async def _at_once() -> None:
    pass
