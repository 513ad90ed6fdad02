"""
A gateway or its broker is killed, and nothing is lost that was acknowledged. Under load one of them is killed at
random, again and again, and started at once, while clients continue. Then every record is accounted for. KILLS is the
number of kills in each of the acknowledgement modes; the default is three kills in one mode. KILLS_SEED repeats the
same choices; a failure names it.
"""

import os
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from random import Random, SystemRandom
from time import monotonic, sleep

import pytest

from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweed.dev.weed_process import WeedProcess
from tests.faults.seaweedmq.gateway import Gateway
from tests.faults.seaweedmq.load import Load

KILLS = int(os.environ.get("KILLS", "0"))
SEED = os.environ.get("KILLS_SEED") or str(SystemRandom().randrange(1 << 32))
_FORMS = ("batch", "record", "plain")
_ONE_IS_KILLED = ["kill_gateway"] * 3 + ["kill_broker"] * 3 + ["kill_storage", "pause_storage", "pause_broker"]
_FAULTS_SHOWN = 20


class Kills:
    """
    Kills processes at random, and measures how long it takes until records are acknowledged again.
    """

    def __init__(self, cluster: DevCluster, gateway: Gateway, load: Load, random: Random) -> None:
        self.times_s: defaultdict[str, list[float]] = defaultdict(list)
        self._cluster = cluster
        self._gateway = gateway
        self._load = load
        self._random = random

    def one(self, what: str) -> None:
        """
        Do this under load, and wait until all partitions take records again: then the gateway has published again what
        a broker has lost, and a broker has written what a gateway has lost.
        """
        sleep(self._random.uniform(0.1, 2.0))
        getattr(self, what)()
        began = monotonic()
        self._start_again()
        started = monotonic()
        first = self._load.wait_until_all_take_records()
        self.times_s[what].append(round(started - began + first, 1))

    def kill_gateway(self) -> None:
        self._gateway.kill()

    def kill_broker(self) -> None:
        self._cluster.broker.kill()

    def kill_both(self) -> None:
        """
        Kill both at the same time, which only records in files survive.
        """
        for kill in self._random.sample([self.kill_gateway, self.kill_broker], 2):
            kill()
            sleep(self._random.uniform(0, 0.2))

    def kill_storage(self) -> None:
        """
        Kill the filer, volume server and master.
        """
        self._cluster.server.kill()
        sleep(self._random.uniform(0, 5))

    def pause_storage(self) -> None:
        self._pause(self._cluster.server)

    def pause_broker(self) -> None:
        self._pause(self._cluster.broker)

    def _pause(self, process: WeedProcess) -> None:
        process.pause()
        sleep(self._random.uniform(1, 9))

    def _start_again(self) -> None:
        if not self._cluster.server.is_running:
            self._cluster.start_server()
        if not self._cluster.broker.is_running:
            self._cluster.broker.start()
        self._cluster.server.resume()
        self._cluster.broker.resume()
        if not self._gateway.is_running:
            self._gateway.start()
            self._load.clients.server_started()


def test_nothing_acknowledged_is_lost(cluster: DevCluster, tmp_path: Path) -> None:
    """
    The gateway and its broker are killed one after the other. Each acknowledged record remains at its offset, once if
    its producer is idempotent, and in order; no offset changes its record for consumers, and committed offsets of
    groups do not go back.
    """
    run(cluster, tmp_path, "held", ("batch",), ["kill_broker", "kill_gateway", "kill_broker"])


@pytest.mark.skipif(not KILLS, reason="KILLS says how often; `tox -e seaweedmq` does")
@pytest.mark.parametrize("acks", ["held", "flushed", "received"])
def test_nothing_is_lost_that_the_mode_promises(cluster: DevCluster, tmp_path: Path, acks: str) -> None:
    """
    Each mode is tried with each form.
    """
    faults = [*_ONE_IS_KILLED, *(["kill_both"] if acks == "flushed" else [])]
    run(cluster, tmp_path, acks, _FORMS, Random(f"{SEED} {acks}").choices(faults, k=KILLS))


def run(cluster: DevCluster, folder: Path, acks: str, forms: Sequence[str], faults: Sequence[str]) -> None:
    """
    Run these kills, one after the other.
    """
    print(f"\nKILLS_SEED={SEED}")
    gateway = Gateway(cluster, folder)
    gateway.start()
    load = Load(gateway, acks, forms, SEED)
    kills = Kills(cluster, gateway, load, Random(f"{SEED} {acks} kills"))
    try:
        load.begin()
        for number, what in enumerate(faults):
            kills.one(what)
            print(number, what, kills.times_s[what][-1], flush=True)
            demand_no_faults(load, number)
        accounts = load.clients.check()
        print(f"{load.ledger.promises} promises; {accounts.records} records, {accounts.repeats} of them repeats")
        print(f"until the first acknowledgement, in seconds: {dict(kills.times_s)}")
        demand_no_faults(load, len(faults))
        load.clients.stop()
        gateway.stop()
    finally:
        load.clients.stop()
        gateway.kill()
        (folder / "gateway.log").write_text(gateway.log)


def demand_no_faults(load: Load, kills: int) -> None:
    """
    Fail if there is a fault.
    """
    found = load.faults()
    more = f"\nand {len(found) - _FAULTS_SHOWN} more" if len(found) > _FAULTS_SHOWN else ""
    assert not found, f"after {kills} kills, with KILLS_SEED={SEED}:\n" + "\n".join(found[:_FAULTS_SHOWN]) + more
