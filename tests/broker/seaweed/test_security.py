"""
A gateway in front of a cluster that is secured in all ways there are, and its errors when the two sides do not match.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.broker.seaweedmq.gateways import group_log, running

pytest.importorskip("OpenSSL")
pytest.importorskip("cryptography")

from confluent_kafka import Consumer, TopicPartition
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import HostnameEndpoint
from twisted.internet.protocol import Factory, Protocol

from kgateway.broker.base import BrokerUnusable
from kgateway.broker.seaweed.calls.addresses import ServerAddress, master_addresses
from kgateway.broker.seaweed.calls.retries import FilerRefused
from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweed.dev.weed_process import NotStarted
from kgateway.broker.seaweed.grpc.status import RpcError
from kgateway.broker.seaweed.masters import BROKERS, FILERS
from kgateway.broker.seaweed.security.cluster_access import Role, Security
from kgateway.broker.seaweed.security.cluster_security import TomlSecurity
from kgateway.broker.seaweed.security.security_toml import BadSecurity, SecurityFile, jwt
from kgateway.broker.seaweedmq.broker import SeaweedMQBroker
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.view import NewTopic
from kgateway.records.record import Record
from kgateway.testing.kafka import Kafka
from kgateway.testing.kafka import NotStarted as GatewayNotStarted
from tests.broker import behaviour
from tests.broker.behaviour import START_MS, appended, batch, fetched, noted, offsets, result
from tests.broker.seaweed.grpc.certificates import Authority
from tests.broker.seaweed.real_reactor import reactor, wait
from tests.broker.seaweed.secured_cluster import FILER_GROUP, Sections, SecuredCluster, write_security
from tests.clients.confluent_client import Confluent

# Twisted 26.10 gives pyOpenSSL 26 what it wants to be given no more.
pytestmark = pytest.mark.filterwarnings("ignore:Passing pyOpenSSL:DeprecationWarning")

_LARGE = os.urandom(100_000)
_SHORTLY = 1.0
Start = Callable[[], SeaweedMQBroker]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    made = SecuredCluster(tmp_path_factory.mktemp("secured"))
    try:
        made.cluster.start()
        yield made
    finally:
        made.cluster.kill()


def loaded(secured: SecuredCluster, changed: Sections | None = None) -> Security:
    return TomlSecurity(SecurityFile(secured.gateway("gateway", changed), {}))


@contextmanager
def client(
    secured: SecuredCluster, security: Security | None, filer_group: str = FILER_GROUP, masters: str = ""
) -> Iterator[SeaweedCluster]:
    """
    A client of the cluster, by its masters or those given.
    """
    made = SeaweedCluster(
        master_addresses(masters or secured.cluster.masters[0]), reactor, filer_group=filer_group, security=security
    )
    try:
        yield made
    finally:
        wait(made.close())


@pytest.fixture
def start(secured: SecuredCluster, monkeypatch: pytest.MonkeyPatch) -> Start:
    """
    A function that creates gateways which serve the same topics.
    """
    monkeypatch.setattr(behaviour, "patience", wait)
    namespace, security = f"test-{uuid4().hex}", loaded(secured)

    def made() -> SeaweedMQBroker:
        return SeaweedMQBroker(
            master_addresses(secured.cluster.masters[0]),
            node_id=1,
            now_ms=lambda: START_MS,
            reactor=reactor,
            namespace=namespace,
            filer_group=FILER_GROUP,
            security=security,
        )

    return made


@pytest.mark.parametrize("form", ["batch", "record"])
def test_records_and_offsets_are_there_again(start: Start, form: str) -> None:
    """
    Topics and records are written over gRPC; files and the state of groups are read over HTTP, large or small.
    """
    large, small = (b"large", _LARGE), (b"small", b"1")
    with running(start) as broker:
        topic = result(broker.create_topic(NewTopic("t", 1, TopicConfig.of({"seaweedmq.format": form}))))
        for count in (2, 3):
            appended(broker.partition(topic.id, 0), batch(count))
        log = group_log(broker)
        noted(log, [large])
        noted(log, [small])
    with running(start) as broker:
        partition = broker.partition(topic.id, 0)
        assert [*offsets(fetched(partition, 0)), *offsets(fetched(partition, 4))]
        assert appended(partition, batch()).base_offset == 5
        log = group_log(broker)
        assert dict(pair for piece in result(log.replay()) for pair in piece) == dict([large, small])


def test_a_gateway_is_told_by_its_settings(secured: SecuredCluster) -> None:
    """
    The gateway is a process with a real Kafka client.
    """
    options = (
        "--broker",
        f"seaweedmq:{secured.cluster.masters[0]}",
        "--seaweed-security",
        str(secured.gateway("process")),
        "--seaweed-filer-group",
        FILER_GROUP,
    )
    rows = [Record(offset, 1_700_000_000_000 + offset, b"k", b"v%d" % offset) for offset in range(20)]
    place = TopicPartition("t", 0, 7)
    with Kafka(*options) as kafka:
        Confluent(kafka.bootstrap).create_topic("t", 1, {"seaweedmq.format": "record"})
        assert Confluent(kafka.bootstrap).send("t", rows) == list(range(20))
        committing(kafka, lambda consumer: consumer.commit(offsets=[place], asynchronous=False))
        kafka.stop()
        kafka.start()
        with Confluent(kafka.bootstrap).reader("t") as reader:
            reader.assign({0: 0})
            assert [record for _, record in reader.take(20)] == rows
        (found,) = committing(kafka, lambda consumer: consumer.committed([place], timeout=20))
        assert found.offset == place.offset
        assert "Traceback" not in kafka.log


def committing(kafka: Kafka, use: Callable[[Consumer], list[TopicPartition]]) -> list[TopicPartition]:
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "g"})
    try:
        return use(consumer)
    finally:
        consumer.close()


def test_a_gateway_does_not_start_with_a_file_that_will_not_do(secured: SecuredCluster) -> None:
    """
    No server is called, because every call would fail.
    """
    path = write_security(secured.folder / "bad.toml", {"grpc": {"ca": secured.ca}})
    kafka = Kafka("--broker", f"seaweedmq:{secured.cluster.masters[0]}", "--seaweed-security", str(path))
    problem = r"seaweed_security: .*bad\.toml: `ca` is under \[grpc\], but neither \[grpc\.mq\] nor \[grpc\.client\]"
    with pytest.raises(GatewayNotStarted, match=problem) as told:
        kafka.start()
    assert "Traceback" not in str(told.value)


@pytest.mark.parametrize("section", ["grpc", "https.client"])
def test_another_authority_is_reported(secured: SecuredCluster, section: str) -> None:
    """
    The error names the file with our authority.
    """
    other = {"ca": secured.keep("other-ca.pem", Authority().certificate)}
    if section == "https.client":
        other |= {"enabled": "true", **secured.identity("gateway")}
    ours = rf"other-ca\.pem \(`ca` under \[{section}\] of"
    problem = f"verify failed: the server's certificate is not from .*{ours}"
    with client(secured, loaded(secured, {section: other})) as seaweed, pytest.raises(RpcError, match=problem):
        wait(asked(seaweed, section))


def asked(seaweed: SeaweedCluster, section: str) -> Deferred[Any]:
    """
    The result of a call that needs the section.
    """
    if section.startswith("grpc"):
        return seaweed.masters.leader(_SHORTLY)
    return wait(seaweed.filer()).files.read("/tests/none", 0, 1, _SHORTLY)


@pytest.mark.parametrize("name", ["gateway", "stranger"])
def test_a_certificate_that_is_not_taken_is_reported(secured: SecuredCluster, name: str) -> None:
    """
    Another authority issued it, or its name is not admitted.
    """
    identity = secured.identity(name, Authority() if name == "gateway" else None)
    problem = rf"alert .*: the server does not accept our certificate: .*{name}\.pem \(`cert` under \[grpc\.mq\]"
    with client(secured, loaded(secured, {"grpc.mq": identity})) as seaweed, pytest.raises(RpcError, match=problem):
        wait(asked(seaweed, "grpc"))


def test_authorities_may_be_several_and_below_each_other(secured: SecuredCluster) -> None:
    """
    The file may have several authorities of servers, and our certificate's file may have intermediate ones.
    """
    ca = secured.keep("both-ca.pem", Authority("another").certificate + secured.authority.certificate)
    between = Authority("between", by=secured.authority)
    identity = secured.identity("gateway", between)
    with Path(identity["cert"]).open("ab") as chain:
        chain.write(between.certificate)
    with client(secured, loaded(secured, {"grpc": {"ca": ca}, "grpc.mq": identity})) as seaweed:
        assert wait(asked(seaweed, "grpc"))


def test_https_without_a_certificate_of_ours_is_reported(secured: SecuredCluster) -> None:
    """
    The servers demand one.
    """
    security = loaded(secured, {"https.client": {"enabled": True, "ca": secured.ca}})
    problem = r"alert .*: no certificate, see \[https\.client\] of .*gateway\.toml"
    with client(secured, security) as seaweed, pytest.raises(RpcError, match=problem):
        wait(asked(seaweed, "https.client"))


def test_https_that_checks_nothing_is_what_the_file_says(secured: SecuredCluster) -> None:
    """
    Any authority and any host name is accepted.
    """
    section: dict[str, str | bool] = {"enabled": True, "insecure_skip_verify": True, **secured.identity("gateway")}
    _, _, port = secured.cluster.filer.partition(":")
    with client(secured, loaded(secured, {"https.client": section})) as seaweed:
        filer = seaweed.filer_at(ServerAddress.parse(f"localhost:{port}"))
        wait(filer.files.put("/tests/blind", b"seen"))
        assert wait(filer.files.read("/tests/blind", 0, 4)) == b"seen"


def test_a_cluster_that_is_not_secured_is_reported(secured: SecuredCluster, cluster: DevCluster) -> None:
    """
    The error says what to look at there.
    """
    with client(secured, loaded(secured), masters=cluster.masters[0]) as seaweed:
        problem = (
            r"TLS: .*: the server may have no TLS: see `cert` and `key` under \[grpc\.master\] of its security\.toml"
        )
        with pytest.raises(RpcError, match=problem):
            wait(seaweed.masters.leader(_SHORTLY))


def test_without_security_nobody_answers(secured: SecuredCluster) -> None:
    """
    The broker's text for its operator names the settings.
    """
    broker = SeaweedMQBroker(
        master_addresses(secured.cluster.masters[0]), node_id=1, now_ms=lambda: START_MS, reactor=reactor
    )
    with pytest.raises(BrokerUnusable, match=r"no master knows the leader.*\(seaweed_security, seaweed_filer_group\)"):
        wait(broker.start())
    wait(broker.stop())


@pytest.mark.parametrize("group", ["", "another"])
def test_another_filer_group_is_reported(secured: SecuredCluster, group: str) -> None:
    """
    Its filers and brokers are not ours.
    """
    which = f"of the filerGroup {group}" if group else "without a filerGroup"
    with client(secured, loaded(secured), group) as seaweed:
        with pytest.raises(RpcError, match=f"the masters know no filer {which} that responds"):
            wait(seaweed.filer())
        assert wait(seaweed.masters.nodes(BROKERS)) == []
    with client(secured, loaded(secured)) as seaweed:
        assert len(wait(seaweed.masters.nodes(FILERS))) == len(wait(seaweed.masters.nodes(BROKERS))) == 1


@pytest.mark.parametrize(
    ("section", "key", "problem"),
    [
        (
            "jwt.filer_signing",
            "wrong",
            r"PUT: .*signatures made with `key` under \[jwt\.filer_signing\] of .*: it has another",
        ),
        (
            "jwt.filer_signing",
            "",
            r"PUT: .*requires a signature, but there is no `key` under \[jwt\.filer_signing\] of",
        ),
        ("jwt.filer_signing.read", "wrong", r"GET: .*made with `key` under \[jwt\.filer_signing\.read\] of"),
        ("jwt.filer_signing.read", "", r"GET: .*no `key` under \[jwt\.filer_signing\.read\] of"),
        (
            "jwt.signing",
            "wrong",
            r"volume: .*the volume server does not .* made with `key` under \[jwt\.signing\] of",
        ),
    ],
)
def test_a_wrong_key_is_reported(secured: SecuredCluster, section: str, key: str, problem: str) -> None:
    """
    Calls that need another key succeed meanwhile.
    """
    path = f"/tests/{uuid4().hex}"
    with client(secured, loaded(secured)) as seaweed:
        wait(wait(seaweed.filer()).files.put(path, _LARGE))
    refused = []
    with client(secured, loaded(secured, {section: {"key": key}})) as seaweed:
        filer = wait(seaweed.filer())
        uses: dict[str, Callable[[], Deferred[Any]]] = {
            "PUT": lambda: filer.files.put(path, _LARGE),
            "GET": lambda: filer.files.read(path, 0, 10),
            "volume": lambda: filer.volumes.upload(path, _LARGE),
        }
        for what, use in uses.items():
            try:
                wait(use())
            except FilerRefused as error:
                refused.append(f"{what}: {error}")
    assert len(refused) == 1
    with pytest.raises(AssertionError, match=problem):
        raise AssertionError(refused[0])


def test_requests_are_signed_for_a_while(secured: SecuredCluster) -> None:
    """
    The token of a request to a volume server is for one file.
    """
    keys = {"jwt.signing": {"key": "v"}, "jwt.filer_signing": {"key": "w", "expires_after_seconds": "60"}}
    keys["jwt.filer_signing.read"] = {"key": "r", "expires_after_seconds": "0"}
    signing = TomlSecurity(SecurityFile(secured.gateway("gateway", keys), {}), lambda: 1_000.9)

    def signed(role: Role, verb: str) -> str:
        return signing.headers(role, verb, "/3,01637037d6")["Authorization"]

    assert signed(Role.VOLUME, "PUT") == f"Bearer {jwt(b'v', {'fid': '3,01637037d6', 'exp': 1_010})}"
    assert signed(Role.VOLUME, "DELETE") == signed(Role.VOLUME, "PUT")
    assert signed(Role.FILER, "PUT") == f"Bearer {jwt(b'w', {'exp': 1_060})}"
    assert signed(Role.FILER, "GET") == f"Bearer {jwt(b'r', {})}"


@pytest.mark.parametrize("key", ["", "of volumes"])
def test_volume_servers_need_no_key_of_ours(secured: SecuredCluster, key: str) -> None:
    """
    The filer gives a token with each assigned file id; with the key we make our own, which a later deletion needs.
    """
    with client(secured, loaded(secured, {"jwt.signing": {"key": key}})) as seaweed:
        filer = wait(seaweed.filer())
        uploaded = wait(filer.volumes.upload("/tests/any", _LARGE))
        wait(filer.volumes.remove(uploaded._replace(permit="") if key else uploaded))


def test_https_is_for_the_host_that_is_spoken_to(secured: SecuredCluster) -> None:
    """
    The certificates are for 127.0.0.1, and for no other name of this machine.
    """
    _, _, port = secured.cluster.filer.partition(":")
    with client(secured, loaded(secured)) as seaweed:
        filer = seaweed.filer_at(ServerAddress.parse(f"localhost:{port}"))
        assert wait(filer.entry("/tests/none")) is None
        problem = r"certificate is not for localhost: see `cert` under \[https\.filer\]"
        with pytest.raises(RpcError, match=problem):
            wait(filer.files.read("/tests/none", 0, 1, _SHORTLY))


def test_renewed_certificates_are_taken_without_a_restart(secured: SecuredCluster) -> None:
    """
    The next connection uses them, or reports what is wrong with them.
    """
    master = ServerAddress.parse(secured.cluster.masters[0]).grpc
    security, key = loaded(secured), secured.folder / "gateway.key"
    endpoint = security.grpc(HostnameEndpoint(reactor, master.host, master.port), Role.MASTER)

    def connect() -> None:
        protocol: Any = wait(endpoint.connect(Factory.forProtocol(Protocol)))
        protocol.transport.loseConnection()

    connect()
    key.write_text("none")
    with pytest.raises(BadSecurity, match=r"gateway\.key .* has no private key in PEM"):
        connect()
    secured.identity("gateway")
    connect()


def test_a_bad_file_in_its_folder_is_no_cluster(tmp_path: Path) -> None:
    """
    SeaweedFS's own programs would ignore a file that they cannot read.
    """
    write_security(tmp_path / "security.toml", {"grpc": {"ca": "none.pem"}, "grpc.client": {"cert": "c", "key": "k"}})
    with pytest.raises(NotStarted, match=r"security\.toml cannot be used: .*No such file"):
        DevCluster(tmp_path)
