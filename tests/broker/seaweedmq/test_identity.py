"""
SeaweedFS's own tools show which gateways there are, and for whom they publish.
"""

import re
from collections.abc import Iterator
from subprocess import run

import grpc
import pytest

from kgateway.broker.seaweed.calls.addresses import ServerAddress, master_addresses
from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweed.dev.weed_process import weed_program
from kgateway.broker.seaweedmq.broker import SeaweedMQBroker
from kgateway.cluster.partition import Origin
from kgateway.cluster.view import Address, NewTopic
from tests.broker import behaviour
from tests.broker.behaviour import START_MS, batch, result
from tests.broker.seaweed.real_reactor import reactor, until, wait
from tests.broker.seaweedmq.test_restarts import config

NAME = "kgateway-7@gw1"
_SECONDS = 30


@pytest.fixture
def broker(cluster: DevCluster, namespace: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[SeaweedMQBroker]:
    """
    A running gateway with this name.
    """
    monkeypatch.setattr(behaviour, "patience", wait)
    masters = master_addresses(",".join(cluster.masters))
    found = SeaweedMQBroker(
        masters, node_id=7, now_ms=lambda: START_MS, reactor=reactor, namespace=namespace, client=NAME
    )
    result(found.start())
    yield found
    result(found.stop())


def shell(cluster: DevCluster, *commands: str) -> str:
    """
    What the shell prints; it fails if a file is not there.
    """
    program = [weed_program(), "shell", f"-master={cluster.masters[0]}"]
    text = "\n".join([*commands, "exit", ""])
    told = run(program, check=False, input=text, text=True, capture_output=True, timeout=_SECONDS, cwd=cluster.folder)
    return told.stdout


def test_the_shell_shows_gateways(broker: SeaweedMQBroker, cluster: DevCluster, namespace: str) -> None:
    """
    Files have the leader's name, and the addresses of each gateway.
    """
    broker.announce({"plaintext": Address("gw1", 9092)})
    folder = f"/topics/{namespace}/.meta/kgateway"
    assert f'"owner": "{NAME}"' in shell(cluster, f"fs.cat {folder}/leader")
    until(lambda: '["gw1", 9092]' in shell(cluster, f"fs.cat {folder}/gateways/7"))
    assert re.search(r"^7$", shell(cluster, f"fs.ls {folder}/gateways"), re.MULTILINE)


def test_the_filer_lists_gateways(broker: SeaweedMQBroker, cluster: DevCluster, namespace: str) -> None:
    """
    Each follows the changes of all topics by its name.
    """
    filer = ServerAddress.parse(cluster.filer).grpc
    with grpc.insecure_channel(str(filer)) as channel:
        listed = channel.unary_unary("/filer_pb.SeaweedFiler/ListMetadataSubscribers")(b"", timeout=_SECONDS)
    assert NAME.encode() in listed
    assert f"/topics/{namespace}/".encode() in listed


def test_brokers_list_a_publisher_and_no_subscriber(
    broker: SeaweedMQBroker, cluster: DevCluster, namespace: str
) -> None:
    """
    They show where a stream comes from, not its name; it is in their log.
    """
    topic = result(broker.create_topic(NewTopic("t", 1, config("batch"))))
    result(broker.partition(topic.id, 0).append(batch(), Origin.CLIENT, "billing").committed)
    request = b"\x0a" + bytes([len(namespace) + 5, 0x0A, len(namespace)]) + namespace.encode() + b"\x12\x01t"
    with grpc.insecure_channel(cluster.broker_address) as channel:
        publishers, subscribers = (
            channel.unary_unary(f"/messaging_pb.SeaweedMessaging/GetTopic{kind}")(request, timeout=_SECONDS)
            for kind in ("Publishers", "Subscribers")
        )
    assert len(re.findall(rb"127\.0\.0\.1:\d+-", publishers)) == 2  # as a name, and as a client id
    assert b"kgateway" not in publishers
    assert subscribers == b""
