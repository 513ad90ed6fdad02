"""
Gateways before a cluster learn of each other.
"""

import pytest
from twisted.internet.task import Clock
from twisted.logger import capturedLogs, eventAsText

from kgateway.broker.seaweed.seaweed import Seaweed
from kgateway.broker.seaweedmq.gateways import GONE_S, LOOK_S, Gateways
from kgateway.broker.seaweedmq.site import Site
from kgateway.broker.spool import Spool
from kgateway.cluster.view import Address, Node
from tests.broker.seaweed.cluster import done
from tests.broker.seaweed.running import until

ADDRESSES = {"plaintext": Address("gw2", 9092), "outside": Address("::1", 19092)}


class World:
    """
    Two gateways: a filer that is real, and a time that is the test's.
    """

    def __init__(self, seaweed: Seaweed, namespace: str) -> None:
        self.clock = Clock()
        self.changes = 0
        self.site = Site(seaweed, namespace, "test", lambda: 0, self.clock, 0, {}, Spool(0))
        self.one, self.two = Gateways(self.site, 1, self._changed), Gateways(self.site, 2, lambda: None)

    def _changed(self) -> None:
        self.changes += 1

    def write(self, name: str, content: bytes) -> None:
        """
        Put a file where gateways have theirs.
        """

        async def write() -> None:
            await (await self.site.seaweed.filer()).write(f"{self.site.folder}/gateways/{name}", content)

        done(write())

    def numbers(self) -> list[int]:
        """
        The ids of those that the first gateway tells clients of, after a look.
        """
        done(self.one.look())
        return [node.id for node in self.one.nodes()]


@pytest.fixture
def world(seaweed: Seaweed, namespace: str) -> World:
    return World(seaweed, namespace)


def test_one_that_waits_is_known_by_its_addresses(world: World) -> None:
    """
    As it has announced them.
    """
    assert world.numbers() == [1]
    world.two.is_waiting = True
    world.two.announce(ADDRESSES)
    until(lambda: world.numbers() == [1, 2])
    assert world.one.known(2) == Node(2, addresses=ADDRESSES)
    assert world.changes == 1
    done(world.two.stop())
    assert world.numbers() == [1]
    assert world.changes == 2


def test_one_that_is_not_heard_of_is_gone(world: World) -> None:
    """
    By the first one's own clock; what is known of it stays, for it may own the topics.
    """
    world.write("2", b'{"number": 1, "listeners": {"plaintext": ["gw2", 9092]}}')
    assert world.numbers() == [1, 2]
    world.clock.advance(GONE_S - 1)
    assert world.numbers() == [1, 2]
    world.clock.advance(1)
    assert world.numbers() == [1]
    owner = world.one.known(2)
    assert owner
    assert [node.id for node in world.one.nodes(owner)] == [1, 2]
    world.write("2", b'{"number": 2, "listeners": {"plaintext": ["gw2", 9092]}}')
    assert world.numbers() == [1, 2]


def test_only_one_that_waits_is_heard_of_again_and_again(world: World) -> None:
    """
    The owner is known by its number in the chain.
    """
    world.two.announce(ADDRESSES)
    until(lambda: world.numbers() == [1, 2])
    for waits, numbers in ((False, [1]), (True, [1, 2])):
        world.two.is_waiting = waits
        for _ in range(int(GONE_S / LOOK_S) + 1):
            world.clock.advance(LOOK_S)
            done(world.two.look())
        until(lambda: world.numbers() == numbers)  # noqa: B023  # it is over at once


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("2", b""),
        ("2", b"[]"),
        ("2", b'{"number": 1}'),
        ("2", b'{"number": 1, "listeners": {"plaintext": "gw2:9092"}}'),
        ("2", b'{"number": 1, "listeners": {"plaintext": ["gw2", Infinity]}}'),
        ("2", b'{"number": 1, "listeners": {"plaintext": ["gw2", 0]}}'),
        ("2", b'{"number": 1, "listeners": {"plaintext": ["gw2", 65536]}}'),
        ("2", b"[" * 100_000),
        ("two", b'{"number": 1, "listeners": {}}'),
        ("-1", b'{"number": 1, "listeners": {}}'),
        ("2147483648", b'{"number": 1, "listeners": {}}'),
    ],
)
def test_what_is_no_gateway_is_told(world: World, name: str, content: bytes) -> None:
    """
    Once, and does no harm.
    """
    world.write(name, content)
    with capturedLogs() as logs:
        assert world.numbers() == world.numbers() == [1]
    assert [f"gateways/{name} tells of no gateway: " in eventAsText(each) for each in logs].count(True) == 1
