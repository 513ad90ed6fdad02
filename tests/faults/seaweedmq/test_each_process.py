"""
Each process of a cluster is killed under load, and started again. KILLS says how often each.
"""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from zlib import crc32

import pytest

from kgateway.broker.seaweed.dev.dev_cluster import DevCluster, Shape
from kgateway.broker.seaweed.dev.weed_process import WeedProcess
from kgateway.config.settings import Settings
from tests.faults.follower import Follower
from tests.faults.seaweedmq.gateway import Gateway
from tests.faults.seaweedmq.gateway_pair import Pair, until_told
from tests.faults.seaweedmq.steady_producer import SteadyProducer

KILLS = int(os.environ.get("KILLS", "1"))
_PATIENCE_S = 90.0  # restarted servers forget the brokers once more within half a minute
_STEADY_S = 1.0

# A cluster has one broker: SeaweedMQ itself does not survive the end of one of several.
_SHAPES = {"one-of-each": Shape(), "several": Shape(filers=2, volume_servers=3)}


class Killer:
    """
    Kills a process, and starts it again at once.
    """

    def __init__(self, cluster: DevCluster, pair: Pair) -> None:
        self._pair = pair
        self.kills: dict[str, Callable[[], None]] = {
            "leader": lambda: self._kill_gateway(self.leader),
            "standby": lambda: self._kill_gateway(self._standby),
        }
        self.leader, self._standby = pair.first, pair.second
        servers = [cluster.server, cluster.broker, *cluster.more_volume_servers, *cluster.filers]
        for server in servers:
            self.kills[server.name] = partial(self._kill_server, server)

    def _kill_server(self, server: WeedProcess) -> None:
        server.kill()
        server.start()

    def _kill_gateway(self, gateway: Gateway) -> None:
        gateway.kill()
        if gateway is self.leader:
            self.leader, self._standby = self._standby, self.leader
        gateway.start()
        ids = {self._pair.first: 1, self._pair.second: 2}
        until_told(self.leader, ids[self.leader], {1, 2})


@pytest.mark.parametrize("shape", _SHAPES.values(), ids=_SHAPES)
def test_each_process_of_a_cluster_can_be_killed(tmp_path: Path, shape: Shape) -> None:
    """
    Records are acknowledged once they are in a file, which takes all processes. Afterwards each acknowledged record is
    there once and in order, and a consumer that has followed has seen the same.
    """
    (tmp_path / "gateways").mkdir()
    cluster = DevCluster(tmp_path / "cluster", shape=shape)
    try:
        cluster.start()
        pair = Pair(cluster, tmp_path / "gateways", "each", Settings().seaweedmq_watchdog_ms, "flushed")
        try:
            kill_each(cluster, pair)
        finally:
            pair.end()
    finally:
        cluster.kill()


def kill_each(cluster: DevCluster, pair: Pair) -> None:
    """
    Kill each process under load, one after the other.
    """
    killer, follower = Killer(cluster, pair), Follower(pair.bootstrap, [pair.place])
    follower.start()
    try:
        with SteadyProducer(pair.bootstrap, pair.place).at_work() as producer:
            for _ in range(KILLS):
                for name, kill in killer.kills.items():
                    sleep(_STEADY_S)
                    began = monotonic()
                    kill()
                    print(
                        f"\n{name}: {producer.seconds_until_acknowledged(began, _PATIENCE_S):.1f} s", end="", flush=True
                    )
            producer.check(killer.leader)
        assert follower.reaches(pair.place, producer.sent), follower.faults
        assert not follower.faults
        assert list(follower.seen[pair.place]) == [crc32(value) for value in producer.values]
    finally:
        follower.stop()
