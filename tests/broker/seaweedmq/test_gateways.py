"""
Gateways in front of a cluster learn of each other.
"""

from collections.abc import Sequence
from itertools import count

import pytest
from twisted.internet.defer import fail
from twisted.internet.task import Clock
from twisted.logger import LogEvent, capturedLogs, formatEvent

from kgateway.broker.partition.spool import Spool
from kgateway.broker.seaweed.calls.retries import FilerRefused
from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweed.filer.filer import Filer
from kgateway.broker.seaweedmq.gateway_runtime import GatewayRuntime
from kgateway.broker.seaweedmq.leadership.gateways import GONE_S, LOOK_S, Gateways
from kgateway.cluster.view import Address, Node
from tests.broker.seaweed.cluster import done
from tests.broker.seaweed.real_reactor import until

ADDRESSES = {"plaintext": Address("gw2", 9092), "outside": Address("::1", 19092)}


class World:
    """
    Two gateways, with a real filer and a clock that the test sets.
    """

    def __init__(self, seaweed: SeaweedCluster, namespace: str) -> None:
        self.clock = Clock()
        self.changes = 0
        self.gateway = GatewayRuntime(seaweed, namespace, "test", lambda: 0, self.clock, 0, {}, Spool(0))
        self.one, self.two = Gateways(self.gateway, 1, self._changed), Gateways(self.gateway, 2, lambda: None)

    def _changed(self) -> None:
        self.changes += 1

    def write(self, name: str, content: bytes) -> None:
        """
        Write a file into the folder of gateways.
        """

        async def write() -> None:
            await (await self.gateway.seaweed.filer()).write(f"{self.gateway.folder}/gateways/{name}", content)

        done(write())

    def later(self) -> bool:
        """
        Advance the clock to another round.
        """
        self.clock.advance(LOOK_S)
        return True

    def at(self, node_id: int) -> Address | None:
        """
        The address of another gateway as the first one knows it after a look, be it alive or not.
        """
        done(self.one.refresh())
        known = self.one.known(node_id)
        return known.addresses["plaintext"] if known else None

    def numbers(self) -> list[int]:
        """
        The ids of the gateways that the first one shows to clients after a look.
        """
        done(self.one.refresh())
        return [node.id for node in self.one.nodes()]


@pytest.fixture
def world(seaweed: SeaweedCluster, namespace: str) -> World:
    return World(seaweed, namespace)


def test_one_that_waits_is_known_by_its_addresses(world: World) -> None:
    """
    A standby has announced them.
    """
    assert world.numbers() == [1]
    world.two.stand_by(leader_has_our_id=False)
    world.two.announce(ADDRESSES)
    until(lambda: world.numbers() == [1, 2])
    assert world.one.known(2) == Node(2, addresses=ADDRESSES)
    assert world.changes == 1
    done(world.two.stop())
    assert world.numbers() == [1]
    assert world.changes == 2


def test_one_that_is_not_heard_of_is_gone(world: World) -> None:
    """
    The first one's own clock counts; what is known of the other is kept, because it may lead.
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
    The leader is known by its epoch in the chain.
    """
    world.two.announce(ADDRESSES)
    until(lambda: world.numbers() == [1, 2])
    for waits, numbers in ((False, [1]), (True, [1, 2])):
        if waits:
            world.two.stand_by(leader_has_our_id=False)
        for _ in range(int(GONE_S / LOOK_S) + 1):
            world.clock.advance(LOOK_S)
            done(world.two.refresh())
        until(lambda: world.numbers() == numbers)  # noqa: B023  # it is over at once


def test_who_waits_for_one_of_its_id_leaves_the_file_to_that(world: World) -> None:
    """
    Clients are sent to the leader. When the standby leads itself, the file is its own, too.
    """
    twin = Gateways(world.gateway, 2, lambda: None)
    twin.stand_by(leader_has_our_id=True)
    world.two.announce({"plaintext": Address("gw2", 9092)})
    until(lambda: world.numbers() == [1, 2])
    with capturedLogs() as logs:
        twin.announce({"plaintext": Address("gw2", 19092)})
        for _ in range(3):
            world.clock.advance(LOOK_S)
            done(twin.refresh())
            assert world.numbers() == [1, 2]
            assert world.at(2) == Address("gw2", 9092)
        done(twin.stop())
    assert not warned(logs)  # it has told nothing yet that could have been replaced
    assert world.numbers() == [1, 2]
    taking_over = Gateways(world.gateway, 2, lambda: None)
    taking_over.announce({"plaintext": Address("gw2", 19092)})
    until(lambda: world.numbers() == [1, 2] and world.at(2) == Address("gw2", 19092))


def test_two_of_the_same_id_are_told_of_each_other(world: World) -> None:
    """
    Each writes its own address, and removes no other's.
    """
    twin = Gateways(world.gateway, 2, lambda: None)
    with capturedLogs() as logs:
        for gateway, port in ((world.two, 9092), (twin, 19092)):
            gateway.stand_by(leader_has_our_id=False)
            gateway.announce({"plaintext": Address("gw2", port)})
            until(lambda: world.numbers() == [1, 2] and world.at(2) == Address("gw2", port))  # noqa: B023
        until(lambda: world.later() and len(warned(logs)) == 2)
    ports = {line.partition(" has the node id 2")[0] for line in warned(logs)}
    assert ports == {"gw2:9092", "gw2:19092"}
    done(world.two.stop())
    until(lambda: world.later() and world.at(2) == Address("gw2", 19092))
    done(twin.stop())
    until(lambda: world.numbers() == [1])


def test_a_gateway_that_stops_while_it_writes_its_file_leaves_none(world: World) -> None:
    world.two.stand_by(leader_has_our_id=False)
    world.two.announce(ADDRESSES)
    until(lambda: world.numbers() == [1, 2])
    world.later()  # a round begins, and has not ended when the gateway stops
    done(world.two.stop())
    assert world.numbers() == [1]


def warned(logs: Sequence[LogEvent]) -> list[str]:
    """
    The warnings about duplicate ids.
    """
    return [text for each in logs if "has the node id" in (text := formatEvent(each))]


def test_a_file_that_could_not_be_written_is_written_later(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The leader, which writes once, does so, too.
    """
    write, tries = Filer.write, count()
    refused = FilerRefused("/x", "is refused")
    monkeypatch.setattr(Filer, "write", lambda *asked: fail(refused) if next(tries) < 2 else write(*asked))
    world.two.announce(ADDRESSES)
    until(lambda: world.later() and world.numbers() == [1, 2])


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
        ("2", b'{"number": 1, "listeners": {"plaintext": ["", 1]}}'),
        ("2", b'{"number": 1, "listeners": {"plaintext": ["a..b", 1]}}'),
        ("2", b'{"number": 1, "listeners": {"plaintext": ["[::1]", 1]}}'),
        ("2", b'{"number": 1, "listeners": {"plaintext": ["\\ud800", 1]}}'),
        ("two", b'{"number": 1, "listeners": {}}'),
        ("02", b'{"number": 1, "listeners": {}}'),
        ("-1", b'{"number": 1, "listeners": {}}'),
        ("2147483648", b'{"number": 1, "listeners": {}}'),
    ],
)
def test_what_is_no_gateway_is_told(world: World, name: str, content: bytes) -> None:
    """
    It is logged once, and does no harm.
    """
    world.write(name, content)
    with capturedLogs() as logs:
        assert world.numbers() == world.numbers() == [1]
    assert [f"gateways/{name} does not describe a gateway: " in formatEvent(each) for each in logs].count(True) == 1
