"""
The feed of a real filer reports changes, and when some may have been missed.
"""

from collections.abc import Callable, Iterator

import pytest

from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweed.filer.change_feed import ChangeFeed
from kgateway.broker.seaweed.filer.filer import Filer
from kgateway.broker.seaweed.protos.filer_pb2 import SubscribeMetadataResponse
from tests.broker.seaweed.real_reactor import pause, wait

_LOST = "lost"


class _Told:
    """
    The reports of a feed, in order.
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
def feed(seaweed: SeaweedCluster, filer: Filer, folder: str, told: _Told) -> Iterator[ChangeFeed]:
    """
    A feed of the test's folder.
    """
    wait(filer.write(f"{folder}/before", b""))
    feed = ChangeFeed(seaweed.filer, f"{folder}/", seaweed.retries, told.changed, told.lost, "a test")
    wait(feed.start())
    yield feed
    feed.stop()


@pytest.mark.usefixtures("feed")
def test_what_changes_is_told(filer: Filer, folder: str, told: _Told) -> None:
    """
    Creations and deletions are reported, but nothing earlier, and nothing in other folders.
    """
    wait(filer.write(f"{folder}/a", b"1"))
    wait(filer.write(f"{folder}-other/x", b"1"))
    wait(filer.write(f"{folder}/b", b"1"))
    wait(filer.delete(f"{folder}/a"))
    assert told.wait_for(lambda names: len(names) >= 3) == ["a", "b", "-a"]


@pytest.mark.usefixtures("feed")
def test_it_goes_on_for_as_long_as_it_is_wanted(filer: Filer, folder: str, told: _Told) -> None:
    """
    It also reports changes that the filer did not know when the feed began.
    """
    for number in range(5):
        pause(0.3)
        wait(filer.write(f"{folder}/{number}", b""))
        told.wait_for(lambda names, number=number: names[-1:] == [str(number)], 1)  # type: ignore[misc]
    assert told.names == ["0", "1", "2", "3", "4"]


@pytest.mark.usefixtures("feed")
def test_two_feeds_are_apart(seaweed: SeaweedCluster, filer: Filer, folder: str, told: _Told) -> None:
    """
    A filer does not mistake one for the other.
    """
    other = _Told()
    second = ChangeFeed(seaweed.filer, f"{folder}/", seaweed.retries, other.changed, other.lost, "a test")
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
    Earlier changes can be read by then, and later ones are reported.
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
    The failure is logged, and is no break.
    """
    told.fails = True
    for name in ("a", "b"):
        wait(filer.write(f"{folder}/{name}", b""))
    assert told.wait_for(lambda names: len(names) >= 2) == ["a", "b"]


def test_a_feed_that_was_stopped_tells_nothing(
    cluster: DevCluster, feed: ChangeFeed, filer: Filer, folder: str, told: _Told
) -> None:
    """
    It does not restart either.
    """
    feed.stop()
    wait(filer.write(f"{folder}/a", b""))
    pause(0.3)
    assert told.names == []


def test_it_begins_when_there_is_a_filer(
    cluster: DevCluster, seaweed: SeaweedCluster, folder: str, told: _Told
) -> None:
    """
    It waits however long that takes.
    """
    cluster.server.kill()
    feed = ChangeFeed(seaweed.filer, f"{folder}/", seaweed.retries, told.changed, told.lost, "a test")
    started = feed.start()
    pause(0.3)
    assert not started.called
    cluster.start_server()
    wait(started)
    wait(wait(seaweed.filer()).write(f"{folder}/a", b""))
    assert told.wait_for(bool) == ["a"]
    feed.stop()
