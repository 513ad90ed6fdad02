"""
The feed of a real filer: what changes is told, and when something may have been missed, that.
"""

from collections.abc import Callable, Iterator

import pytest

from kgateway.broker.seaweed.dev_cluster import DevCluster
from kgateway.broker.seaweed.feed import Feed
from kgateway.broker.seaweed.filer import Filer
from kgateway.broker.seaweed.protos.filer_pb2 import SubscribeMetadataResponse
from kgateway.broker.seaweed.seaweed import Seaweed
from tests.broker.seaweed.running import pause, wait

_LOST = "lost"


class _Told:
    """
    What a feed has told, in order.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.fails = False

    def changed(self, event: SubscribeMetadataResponse) -> None:
        change = event.event_notification
        gone = change.old_entry.name and not change.new_entry.name
        self.names.append(f"-{change.old_entry.name}" if gone else change.new_entry.name)
        if self.fails:
            raise KeyError("a listener that fails")

    def lost(self) -> None:
        self.names.append(_LOST)

    def wait_for(self, condition: Callable[[list[str]], bool], seconds: float = 10) -> list[str]:
        for _ in range(int(seconds / 0.01)):
            if condition(self.names):
                break
            pause(0.01)
        assert condition(self.names), self.names
        return self.names


@pytest.fixture
def told() -> _Told:
    return _Told()


@pytest.fixture
def feed(seaweed: Seaweed, filer: Filer, folder: str, told: _Told) -> Iterator[Feed]:
    """
    A feed of the test's folder.
    """
    wait(filer.write(f"{folder}/before", b""))
    feed = Feed(seaweed.filer, f"{folder}/", seaweed.retrying, told.changed, told.lost, "a test")
    wait(feed.start())
    yield feed
    feed.stop()


@pytest.mark.usefixtures("feed")
def test_what_changes_is_told(filer: Filer, folder: str, told: _Told) -> None:
    """
    What is made, and what goes; nothing of what was before, nor of other folders.
    """
    wait(filer.write(f"{folder}/a", b"1"))
    wait(filer.write(f"{folder}-other/x", b"1"))
    wait(filer.write(f"{folder}/b", b"1"))
    wait(filer.delete(f"{folder}/a"))
    assert told.wait_for(lambda names: len(names) >= 3) == ["a", "b", "-a"]


@pytest.mark.usefixtures("feed")
def test_it_goes_on_for_as_long_as_it_is_wanted(filer: Filer, folder: str, told: _Told) -> None:
    """
    Not only for what the filer knows when it begins.
    """
    for number in range(5):
        pause(0.3)
        wait(filer.write(f"{folder}/{number}", b""))
        told.wait_for(lambda names, number=number: names[-1:] == [str(number)], 1)  # type: ignore[misc]
    assert told.names == ["0", "1", "2", "3", "4"]


@pytest.mark.usefixtures("feed")
def test_two_feeds_are_apart(seaweed: Seaweed, filer: Filer, folder: str, told: _Told) -> None:
    """
    A filer takes neither for the other.
    """
    other = _Told()
    second = Feed(seaweed.filer, f"{folder}/", seaweed.retrying, other.changed, other.lost, "a test")
    wait(second.start())
    wait(filer.write(f"{folder}/a", b""))
    told.wait_for(lambda names: names == ["a"])
    other.wait_for(lambda names: names == ["a"])
    second.stop()


@pytest.mark.usefixtures("feed")
def test_after_a_break_it_is_told_that_something_may_be_missing(
    cluster: DevCluster, filer: Filer, folder: str, told: _Told
) -> None:
    """
    All that is there then can be read, and all that comes later is told.
    """
    for number in range(10):
        wait(filer.write(f"{folder}/{number}", b""))
    cluster.server.kill()
    cluster.start_server()
    told.wait_for(lambda names: _LOST in names)
    assert len(wait(filer.entries(folder))) == 11
    wait(filer.write(f"{folder}/after", b""))
    told.wait_for(lambda names: names[-1] == "after")
    assert told.names.index(_LOST) < told.names.index("after")


@pytest.mark.usefixtures("feed")
def test_a_listener_that_fails_is_told_the_next_change_all_the_same(filer: Filer, folder: str, told: _Told) -> None:
    """
    Its failure is logged, and is no break.
    """
    told.fails = True
    for name in ("a", "b"):
        wait(filer.write(f"{folder}/{name}", b""))
    assert told.wait_for(lambda names: len(names) >= 2) == ["a", "b"]


def test_a_feed_that_was_stopped_tells_nothing(
    cluster: DevCluster, feed: Feed, filer: Filer, folder: str, told: _Told
) -> None:
    """
    Nor does it come back.
    """
    feed.stop()
    wait(filer.write(f"{folder}/a", b""))
    pause(0.3)
    assert told.names == []


def test_it_begins_when_there_is_a_filer(cluster: DevCluster, seaweed: Seaweed, folder: str, told: _Told) -> None:
    """
    However long that takes.
    """
    cluster.server.kill()
    feed = Feed(seaweed.filer, f"{folder}/", seaweed.retrying, told.changed, told.lost, "a test")
    started = feed.start()
    pause(0.3)
    assert not started.called
    cluster.start_server()
    wait(started)
    wait(wait(seaweed.filer()).write(f"{folder}/a", b""))
    assert told.wait_for(bool) == ["a"]
    feed.stop()
