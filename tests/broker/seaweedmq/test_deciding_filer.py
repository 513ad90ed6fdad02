"""
Gateways in front of several filers agree on the one that decides, and refuse filers that cannot be used safely.
"""

from collections.abc import Callable, Iterator
from typing import TypeVar
from uuid import uuid4

import pytest
from twisted.internet import defer
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.task import Clock
from twisted.logger import capturedLogs, formatEvent

from kgateway.broker.base import BrokerUnusable
from kgateway.broker.partition.spool import Spool
from kgateway.broker.seaweed.calls.addresses import ServerAddress, master_addresses
from kgateway.broker.seaweed.chain.appender import ChainLost
from kgateway.broker.seaweed.chain.chain import Chain
from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweed.dev.dev_cluster import HOST, DevCluster, Shape
from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.broker.seaweed.lock import FilerLock
from kgateway.broker.seaweed.masters import FILERS, ClusterNode
from kgateway.broker.seaweedmq.gateway_runtime import GatewayRuntime
from kgateway.broker.seaweedmq.leadership.deciding_filer import CHECK_S, DecidingFiler, Decision
from kgateway.broker.seaweedmq.leadership.lease import LOCK_S, LeaderLease
from tests.broker.seaweed.cluster import done, pause_second_filer
from tests.broker.seaweed.real_reactor import reactor, until, wait
from tests.broker.seaweedmq.gateways import gateway as whole_gateway

T = TypeVar("T")

_NOWHERE = ServerAddress(HOST, 1, 2)
_MOMENT_S = 0.1


class Gateway:
    """
    As much of a gateway as finds the filer that decides.
    """

    def __init__(self, cluster: DevCluster, namespace: str) -> None:
        self.seaweed = SeaweedCluster(master_addresses(",".join(cluster.masters)), reactor)
        self.clock = Clock()
        runtime = GatewayRuntime(self.seaweed, namespace, "test", lambda: 0, self.clock, 0, {}, Spool(0))
        self.folder = runtime.folder
        self.deciding = DecidingFiler(runtime._replace(reactor=self.clock))
        self.filers = [self.seaweed.filer_at(ServerAddress.parse(each)) for each in cluster.filer_addresses]

    @property
    def decision(self) -> Decision:
        content = wait(self.filers[0].content(f"{self.folder}/filer"))
        assert content
        return Decision.decoded(content)

    def write(self, content: bytes) -> None:
        filer = self.filers[0]
        wait(filer.create(f"{self.folder}/filer", filer.versioned_file(content), only_if_absent=False))

    def append(self, number: int) -> Deferred[bool]:
        """
        Append to a chain that this gateway has not read. Fires with whether that was done.
        """

        async def append() -> bool:
            chain = Chain(await self.seaweed.filer(), f"{self.folder}/{number}", self.seaweed.retries, shared=True)
            try:
                await chain.append(b"")
            except ChainLost:
                return False
            return True

        return Deferred.fromCoroutine(append())

    def lease(self, subfolder: str = "") -> LeaderLease:
        """
        A claim to lead, by the filer in use.
        """
        filer, folder = wait(self.seaweed.filer()), f"{self.folder}{subfolder}"
        chain = Chain(filer, f"{folder}/owners", self.seaweed.retries, shared=True)
        lock = FilerLock(filer, f"{folder}/leader", "test", LOCK_S, reactor)
        return LeaderLease(lock, chain, "test", 1, reactor, lambda _: None, lambda: None)

    def until_listed(self, count: int) -> None:
        """
        Wait until the master knows this many filers.
        """
        until(lambda: len(wait(self.seaweed.masters.nodes(FILERS, refresh=True))) == count)


Open = Callable[[DevCluster], Gateway]


@pytest.fixture
def gateway(namespace: str) -> Iterator[Open]:
    """
    Opens gateways of the same namespace.
    """
    opened: list[Gateway] = []

    def open_one(cluster: DevCluster) -> Gateway:
        opened.append(Gateway(cluster, namespace))
        return opened[-1]

    yield open_one
    for each in opened:
        each.deciding.stop()
        wait(each.seaweed.close())


def _two_filers(folder: pytest.TempPathFactory, *, has_shared_store: bool) -> Iterator[DevCluster]:
    cluster = DevCluster(folder.mktemp("filers"), shape=Shape(filers=2, has_shared_store=has_shared_store))
    try:
        cluster.start_server()
        yield cluster
    finally:
        cluster.kill()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevCluster]:
    """
    Two filers that share a store.
    """
    yield from _two_filers(tmp_path_factory, has_shared_store=True)


@pytest.fixture(scope="module")
def separate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevCluster]:
    """
    Two filers with stores of their own.
    """
    yield from _two_filers(tmp_path_factory, has_shared_store=False)


def _all(asked: list[Deferred[T]]) -> list[T]:
    answers: Deferred[list[T]] = gatherResults(asked)
    return wait(answers)


def _rejoin(cluster: DevCluster) -> None:
    """
    Let the second filer leave and join again: for some seconds, the two disagree about the owners of paths.
    """
    cluster.filers[1].kill()
    cluster.start_filer(1)


@pytest.mark.parametrize("kind", ["shared", "separate"])
def test_two_filers_would_decide_one_name(kind: str, gateway: Open, request: pytest.FixtureRequest) -> None:
    """
    Why gateways must not leave the choice to SeaweedFS, which forwards a conditional create to the owner of the path.
    """
    cluster: DevCluster = request.getfixturevalue(kind)
    one = gateway(cluster)
    _rejoin(cluster)

    def have_both_won(number: int) -> bool:
        path = f"{one.folder}/{number}"
        asked = [filer.create(path, filer.small_file(b""), only_if_absent=True) for filer in one.filers]
        won = _all(asked)
        return all(won)

    assert any(have_both_won(number) for number in range(300))


def test_one_gateway_wins_each_number_of_a_chain(shared: DevCluster, gateway: Open) -> None:
    """
    They use the same filer, while another one joins, too.
    """
    gateways = [gateway(shared), gateway(shared)]
    _all([each.deciding.use() for each in gateways])
    _rejoin(shared)
    for number in range(300):
        assert sorted(_all([each.append(number) for each in gateways])) == [False, True]


def test_two_gateways_with_a_filer_each_would_win_the_same_number(shared: DevCluster, gateway: Open) -> None:
    """
    No store decides which of them is first.
    """
    gateways = [gateway(shared), gateway(shared)]
    for each, filer in zip(gateways, gateways[0].filers, strict=True):
        each.seaweed.pin(filer.address, wait(filer.store()))

    def have_both_won(number: int) -> bool:
        won = _all([each.append(number) for each in gateways])
        return all(won)

    assert any(have_both_won(number) for number in range(300))


def test_two_gateways_lead_at_a_time_if_each_uses_a_filer_of_its_own(separate: DevCluster, gateway: Open) -> None:
    """
    A filer that was suspended does not know at once what the other one has decided meanwhile: it gives the lock away
    once more, and mostly the same epoch, unless it learns of that one before.
    """
    gateways = [gateway(separate), gateway(separate)]
    for each, filer in zip(gateways, gateways[0].filers, strict=True):
        wait(each.seaweed.pin(filer.address, wait(filer.store())).store())

    def both_lead(number: int) -> bool:
        first, second = (each.lease(f"/{number}") for each in gateways)
        separate.filers[1].pause()
        try:
            for _ in range(50):
                _all([gateways[0].filers[0].write(f"{gateways[0].folder}/{uuid4().hex}", b"") for _ in range(100)])
            done(first.take())
        finally:
            separate.filers[1].resume()
        try:
            wait(Deferred.fromCoroutine(second.take()).addTimeout(LOCK_S / 2, reactor))
        except (ChainLost, defer.TimeoutError):  # its filer knew already
            done(first.give_back())
            return False
        for lease in (first, second):
            lease.check()
            done(lease.give_back())
        return True

    assert any(map(both_lead, range(10)))


def test_one_gateway_leads_if_both_use_the_filer_that_decides(shared: DevCluster, gateway: Open) -> None:
    """
    Each wins the lock and an epoch only if the other one does not, although a filer has just joined.
    """
    gateways = [gateway(shared), gateway(shared)]
    _all([each.deciding.use() for each in gateways])
    _rejoin(shared)
    leaders: list[LeaderLease] = []

    async def lead(lease: LeaderLease) -> None:
        await lease.take()
        leaders.append(lease)

    for _ in range(10):
        taking = [Deferred.fromCoroutine(lead(each.lease())) for each in gateways]
        until(lambda: leaders)
        assert [taken.called for taken in taking].count(True) == 1
        done(leaders[-1].give_back())
        _all(taking)
        done(leaders[-1].give_back())
        assert len(leaders) == 2
        leaders.clear()


def test_another_filer_that_hangs_stops_no_gateway(shared: DevCluster, gateway: Open) -> None:
    """
    SeaweedFS itself would wait for it wherever it is the owner of a path.
    """
    one = gateway(shared)
    wait(one.deciding.use())
    pause_second_filer(shared)

    def is_waited_for() -> bool:
        filer, path = one.filers[0], f"{one.folder}/{uuid4().hex}"
        try:
            wait(filer.create(path, filer.small_file(b""), only_if_absent=True, timeout_s=0.5))
        except RpcError as error:
            return error.status is Status.DEADLINE_EXCEEDED
        return False

    try:
        until(is_waited_for)
        lease = one.lease()
        done(lease.take(), 2)
        done(lease.give_back(), 2)
        assert [wait(one.append(number), 2) for number in range(20)] == [True] * 20
    finally:
        _rejoin(shared)  # the master would drop it for a while after it goes on


def test_gateways_agree_on_the_filer_that_has_run_longest(shared: DevCluster, gateway: Open) -> None:
    """
    Later ones follow, although another filer has run longer by then.
    """
    gateways = [gateway(shared) for _ in range(4)]
    used = _all([each.deciding.use() for each in gateways])
    assert [filer.address for filer in used] == [gateways[0].filers[0].address] * 4
    assert gateways[0].decision.is_shared
    shared.filers[0].kill()
    gateways[0].until_listed(1)
    shared.start_filer(0)
    later = gateway(shared)
    assert wait(later.deciding.use()).address == used[0].address
    assert wait(later.seaweed.filer()).address == used[0].address


def test_filers_with_stores_of_their_own_are_refused(separate: DevCluster, namespace: str) -> None:
    """
    The message names them.
    """
    broker = whole_gateway(separate, namespace)
    with pytest.raises(BrokerUnusable, match="the filers have stores of their own: ") as told:
        wait(broker.start())
    wait(broker.stop())
    for each in separate.filer_addresses:
        assert f"{ServerAddress.parse(each)} (store " in str(told.value)


def test_the_filer_of_a_shared_store_must_be_there(shared: DevCluster, gateway: Open) -> None:
    """
    It may still run where the masters do not see it.
    """
    one = gateway(shared)
    wait(one.deciding.use())
    one.write(one.decision._replace(address=_NOWHERE).encoded())
    with pytest.raises(BrokerUnusable, match=f"names the filer {_NOWHERE}, which the masters do not know"):
        wait(gateway(shared).deciding.use(_MOMENT_S))


def test_a_gateway_waits_for_a_filer_that_was_just_started(
    shared: DevCluster, gateway: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    The masters may know the other filers first.
    """
    one, later = gateway(shared), gateway(shared)
    address = wait(one.deciding.use()).address
    shared.filers[0].kill()
    one.until_listed(1)
    attempts, nodes = [], later.seaweed.masters.nodes

    def noted(kind: str, *, refresh: bool) -> Deferred[list[ClusterNode]]:
        attempts.append(kind)
        return nodes(kind, refresh=refresh)

    monkeypatch.setattr(later.seaweed.masters, "nodes", noted)
    used = later.deciding.use()
    until(lambda: len(attempts) > 1 or used.called)
    shared.start_filer(0)
    assert wait(used).address == address


def test_no_filer_is_chosen_while_one_does_not_respond(shared: DevCluster, gateway: Open) -> None:
    """
    It may have another store. Later gateways need not ask it.
    """
    pause_second_filer(shared)
    try:
        one = gateway(shared)
        with pytest.raises(RpcError, match=f"because {one.filers[1].address}.* did not respond within"):
            wait(one.deciding.use(_MOMENT_S))
        one.write(Decision(one.filers[0].address, wait(one.filers[0].store()), True).encoded())
        assert wait(one.deciding.use()).address == one.filers[0].address
    finally:
        _rejoin(shared)


def test_a_filer_without_others_may_have_another_address(cluster: DevCluster, gateway: Open) -> None:
    """
    It was started again elsewhere.
    """
    one = gateway(cluster)
    address = wait(one.deciding.use()).address
    assert not one.decision.is_shared
    one.write(one.decision._replace(address=_NOWHERE).encoded())
    assert wait(gateway(cluster).deciding.use()).address == address
    assert one.decision.address == address


def test_the_copy_of_a_store_is_refused(cluster: DevCluster, gateway: Open) -> None:
    """
    It may lack the last entries.
    """
    one = gateway(cluster)
    wait(one.deciding.use())
    one.write(one.decision._replace(store=1).encoded())
    with pytest.raises(BrokerUnusable, match="with the store 1, but the filers that respond have another store"):
        wait(gateway(cluster).deciding.use())


@pytest.mark.parametrize("content", [b"", b"[]", b'{"filer": "nowhere", "store": 1, "is_shared": false}'])
def test_a_file_that_names_no_filer_is_refused(cluster: DevCluster, gateway: Open, content: bytes) -> None:
    """
    Who has written it, and why, is unknown.
    """
    one = gateway(cluster)
    one.write(content)
    with pytest.raises(BrokerUnusable, match=f"{one.folder}/filer is not the file of a gateway"):
        wait(one.deciding.use())


def test_the_filer_in_use_is_kept_when_it_does_not_answer(cluster: DevCluster, gateway: Open) -> None:
    """
    Another one must not decide.
    """
    one = gateway(cluster)
    pinned = one.seaweed.pin(_NOWHERE, 1)
    while not pinned.is_out:
        with pytest.raises(RpcError, match="refused"):
            wait(pinned.store())
    assert wait(one.seaweed.filer()) is pinned


def test_a_connection_to_a_filer_with_another_store_is_not_used(cluster: DevCluster, gateway: Open) -> None:
    """
    The filer was started with a new store, or another one has its address.
    """
    one = gateway(cluster)
    store = wait(one.filers[0].store())
    pinned = one.seaweed.pin(one.filers[0].address, store + 1)
    with pytest.raises(RpcError, match=f"has the store {store} instead of {store + 1}"):
        wait(pinned.create_here(f"{one.folder}/any", pinned.small_file(b"")))


def test_a_filer_that_joins_with_a_store_of_its_own_is_reported_once(separate: DevCluster, gateway: Open) -> None:
    """
    The gateway goes on with the filer that it has.
    """
    separate.filers[1].kill()
    one = gateway(separate)
    one.until_listed(1)
    wait(one.deciding.use())
    one.deciding.watch()
    with capturedLogs() as logs:
        separate.start_filer(1)

        def reported() -> int:
            one.clock.advance(CHECK_S)
            wait(one.filers[0].store())
            return sum("stores of their own are in the cluster" in formatEvent(each) for each in logs)

        until(reported)
        assert [reported() for _ in range(5)] == [1] * 5


def test_a_store_that_becomes_a_shared_one_is_noted(shared: DevCluster, gateway: Open) -> None:
    """
    From then on the filer that decides must not have another address. One of several gateways writes that down.
    """
    shared.filers[1].kill()
    gateways = [gateway(shared), gateway(shared)]
    gateways[0].until_listed(1)
    for each in gateways:
        wait(each.deciding.use())
        assert not each.decision.is_shared
        each.deciding.watch()
    shared.start_filer(1)

    def is_noted() -> bool:
        gateways[0].clock.advance(CHECK_S)
        return gateways[0].decision.is_shared

    until(is_noted)
    with capturedLogs() as logs:
        for _ in range(5):
            gateways[1].clock.advance(CHECK_S)
            wait(gateways[1].filers[0].store())
    assert not [each for each in map(formatEvent, logs) if "cannot check" in str(each)]
