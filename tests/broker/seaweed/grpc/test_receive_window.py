"""
When a peer gets a window update.
"""

from kgateway.broker.seaweed.grpc.stream import ReceiveWindow


def test_what_is_freed_is_told_once_when_half_is_used() -> None:
    window = ReceiveWindow(100)
    assert [window.take(size) for size in (20, 29, 1, 49, 2)] == [0, 0, 50, 0, 51]


def test_a_frame_may_be_larger_than_the_window() -> None:
    assert ReceiveWindow(100).take(1000) == 1000
