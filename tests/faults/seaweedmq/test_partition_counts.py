"""
An operator gives topics other numbers of partitions in SeaweedFS's shell, while clients write and read. Nothing is
lost, no topic of Kafka's clients shrinks, and clients continue by themselves.
"""

from pathlib import Path
from subprocess import run
from time import monotonic, sleep

from confluent_kafka.admin import AdminClient

from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweed.dev.weed_process import weed_program
from tests.faults.seaweedmq.gateway import Gateway
from tests.faults.seaweedmq.load import Load
from tests.faults.seaweedmq.test_kills import SEED, demand_no_faults

_FORMS = ("batch", "record", "plain")
_COUNTS = 4, 1, 3, 5  # one after the other; the topics begin with two
_SHELL_S = 60
_SEEN_S = 90


def configure(cluster: DevCluster, topics: set[str], count: int) -> None:
    commands = [f"mq.topic.configure -namespace kafka -topic {topic} -partitionCount {count}" for topic in topics]
    program = [weed_program(), "shell", f"-master={cluster.masters[0]}"]
    text = "\n".join([*commands, "exit", ""])
    run(program, input=text, text=True, capture_output=True, timeout=_SHELL_S, check=True, cwd=cluster.folder)


def demand_counts(gateway: Gateway, topics: set[str], count: int) -> None:
    """
    Wait until clients see at least so many partitions, and see that they never see fewer than before.
    """
    admin, before, deadline = AdminClient({"bootstrap.servers": gateway.bootstrap}), 0, monotonic() + _SEEN_S
    while before < count:
        assert monotonic() < deadline, before
        seen = admin.list_topics(timeout=_SEEN_S).topics
        found = min(len(seen[topic].partitions) for topic in topics)
        assert found >= before
        before = found
        sleep(0.1)


def test_topics_get_other_numbers_of_partitions_under_load(cluster: DevCluster, tmp_path: Path) -> None:
    """
    Each acknowledged record remains at its offset, once if its producer is idempotent, and in order; committed offsets
    of groups remain valid.
    """
    gateway, most = Gateway(cluster, tmp_path), 2
    gateway.start()
    load = Load(gateway, "held", _FORMS, SEED)
    topics = {topic for topic, _ in load.places}
    try:
        load.begin()
        load.wait_until_all_take_records()
        for number, count in enumerate(_COUNTS):
            configure(cluster, topics, count)
            most = max(most, count)
            demand_counts(gateway, topics, most)
            waited = load.wait_until_all_take_records()
            print(f"{count} partitions: {waited:.1f} s until the first acknowledgement", flush=True)
            demand_no_faults(load, number)
        accounts = load.clients.check()
        print(f"{load.ledger.promises} promises; {accounts.records} records, {accounts.repeats} of them repeats")
        demand_no_faults(load, len(_COUNTS))
        load.clients.stop()
        gateway.stop()
    finally:
        load.clients.stop()
        gateway.kill()
        (tmp_path / "gateway.log").write_text(gateway.log)
