"""
A real gateway among clients that send damaged frames of all APIs and versions through many connections.

In the environment HOSTILE_FRAMES is the number of frames, HOSTILE_SEED makes others, and HOSTILE_ROUND is the first
round. A round's frames follow from the seed and its number, and a failure names both.
"""

import os
import re
from collections.abc import Iterator
from random import Random

import pytest

from kgateway import groups, transactions
from kgateway.cluster.deadline import Deadline
from kgateway.cluster.topic_creation import TopicPlan
from kgateway.messages.api_versions import ApiVersionsRequest
from kgateway.messages.create_topics import CreateTopicsRequest
from kgateway.messages.delete_topics import DeleteTopicsRequest
from kgateway.messages.metadata import MetadataRequest
from kgateway.server.gateway import Gateway
from kgateway.testing.kafka import Kafka
from kgateway.wire.uuids import Uuid
from tests.faults.client import Client
from tests.faults.frames import LASTING, Frames
from tests.faults.process import MIB, peak_resident_bytes, resident_bytes, started_at
from tests.faults.swarm import Swarm
from tests.faults.witness import WAIT_S, Witness

FRAMES = int(os.environ.get("HOSTILE_FRAMES", "10_000"))
SEED = int(os.environ.get("HOSTILE_SEED", "1"))
FIRST_ROUND = int(os.environ.get("HOSTILE_ROUND", "0"))
ROUND_FRAMES = 20_000

# The memory that a round may add to an idle gateway, whatever rounds were before. The codec's functions, generated on
# the first request of their kind, take some 20 MiB; 64 connections, whose requests are small, far less than 256 KiB
# each, 16 MiB; a round's topics and records, deleted after it, some 20 MiB. The rest is what Python frees later.
GROWTH_BYTES_MAX = 96 * MIB

WITNESSED = "witnessed"
_CREATE_VERSION = 7
_DELETE_VERSION = 5
_METADATA_VERSION = 9


def _by(source: type) -> str:
    """
    Match the name of a logger, as its class has it.
    """
    return re.escape(f"{source.__module__}.{source.__qualname__}")


_FORESEEN = re.compile(
    rf"""\S+\ \[( -\]\ .*                                                # listeners open and close
       | (twisted\.scripts|twisted\.internet\.base)\S*\#info\]\ .*          # the process begins and ends
       | {_by(Gateway)}\#info\]\ 127\.0\.0\.1\ on\ plaintext\ closed:\ .*
       | {_by(TopicPlan)}\#warn\]\ topic\ .*                                # gets fewer replicas than it wants
       | {_by(Deadline)}\#info\]\ a\ change\ .*\ was\ refused:\ .*          # its client had no time
       | {re.escape(groups.__name__)}\.\S+\#info\]\ group\ (.|\n)*           # what becomes of groups
       | {re.escape(transactions.__name__)}\.\S+\#info\]\ ((?!Traceback).|\n)*  # and of transactions
       )
       | \S+\ kgateway\ \S+\ is\ ready:\ .*""",
    re.VERBOSE,
)


def unforeseen(log: str) -> dict[str, str]:
    """
    The kinds of unforeseen failures in a log, each once, by last line; lines about disconnected clients are foreseen.
    """
    entries = re.split(r"\n(?!\t)", log.strip("\n"))  # the lines of a traceback begin with a tab
    failures = [entry for entry in entries if not _FORESEEN.fullmatch(entry)]
    return {re.sub(r"\d+", "N", entry.strip().rpartition("\n\t")[2]): entry for entry in failures}


def test_hostile_frames_do_no_harm() -> None:
    """
    The process and its memory bound survive, other clients are served in time, acknowledged records are there, each
    response answers its request, and no failure is unforeseen.
    """
    with Kafka() as kafka:
        began, idle_bytes = started_at(kafka.pid), peak_resident_bytes(kafka.pid)
        create(kafka.port, WITNESSED, retention_ms=-1)  # its records are of 2023
        with Witness(kafka.port, WITNESSED) as witness:
            for number, count in rounds():
                hint = f"HOSTILE_SEED={SEED} HOSTILE_ROUND={number} makes these frames again"
                frames = Frames(f"{SEED} {number}", served(kafka.port), create(kafka.port, LASTING))
                swarm = Swarm(kafka.port, (frames[i] for i in range(count)), Random(f"{SEED} {number}"))
                swarm.run()
                assert witness.failure is None, f"{hint}: {witness.failure!r}, to be served within {WAIT_S} s"
                assert not swarm.wrong, f"{hint}: {swarm.wrong[:3]}"
                assert started_at(kafka.pid) == began, hint
                check_log(kafka.log, frames, hint)
                grown = peak_resident_bytes(kafka.pid) - idle_bytes
                assert grown < GROWTH_BYTES_MAX, f"{hint}: memory has grown by {grown / MIB:.0f} MiB"
                delete_others(kafka.port)
                print(
                    f"round {number}: {dict(swarm.outcomes)}, memory {resident_bytes(kafka.pid) / MIB:.0f} MiB,",
                    end=" ",
                )
                print(f"at most + {grown / MIB:.0f} MiB,", end=" ")
                print(f"{len(witness.acknowledged)} records, at most {witness.longest_wait_s * 1000:.0f} ms a turn")
                assert swarm.outcomes["answered"] > count / 10, "most of the frames test nothing"
        assert witness.acknowledged
        assert witness.read_back() == witness.acknowledged
    check_log(kafka.log, frames, hint)


def rounds() -> Iterator[tuple[int, int]]:
    """
    The number of each round and of its frames.
    """
    left, number = FRAMES, FIRST_ROUND
    while left > 0:
        yield number, min(left, ROUND_FRAMES)
        left, number = left - ROUND_FRAMES, number + 1


def check_log(log: str, frames: Frames, hint: str) -> None:
    """
    Fail with each kind of unforeseen failure, and a frame that causes it.
    """
    told = []
    for entry in unforeseen(log).values():
        named = re.search(r"frame-(\d+)", entry)
        told.append(f"{entry}\n{frames[int(named[1])].data.hex()}" if named else entry)
    assert not told, "\n\n".join([hint, *told])


def served(port: int) -> dict[int, range]:
    """
    The supported versions of each API.
    """
    with Client(port) as client:
        answer = client.ask(ApiVersionsRequest(), 0)
    return {api.api_key: range(api.min_version, api.max_version + 1) for api in answer.api_keys}


def create(port: int, name: str, retention_ms: int = 604_800_000) -> Uuid:
    """
    Create a topic and return its id.
    """
    configs = [CreateTopicsRequest.Topic.Config(name="retention.ms", value=str(retention_ms))]
    wanted = CreateTopicsRequest.Topic(
        name=name, num_partitions=2, replication_factor=1, assignments=[], configs=configs
    )
    with Client(port) as client:
        [topic] = client.ask(CreateTopicsRequest(topics=[wanted]), _CREATE_VERSION).topics
    assert topic.error_code == 0
    return Uuid(topic.topic_id)


def delete_others(port: int) -> None:
    """
    Delete all topics but the witness's.
    """
    with Client(port) as client:
        topics = client.ask(MetadataRequest(topics=None), _METADATA_VERSION).topics
        names = [topic.name for topic in topics if topic.name != WITNESSED and not topic.is_internal]
        deleted = client.ask(DeleteTopicsRequest(topic_names=names, timeout_ms=30_000), _DELETE_VERSION).responses
    assert [topic.error_code for topic in deleted] == [0] * len(names)


@pytest.mark.parametrize(
    "line",
    [
        "2026-11-21T14:00:00+0000 [kgateway.server.gateway.Gateway#info] 127.0.0.1 on plaintext closed: Frame: size",
        "2026-11-21T14:00:00+0000 [kgateway.cluster.topic_creation.TopicPlan#warn] topic t: replication factor 3",
        "2026-11-21T14:00:00+0000 [-] (TCP Port 9092 Closed)",
        "2026-11-21T14:00:00+0000 [twisted.internet.base#info] Main loop terminated.",
    ],
)
def test_foreseen_lines_are_no_failures(line: str) -> None:
    """
    Disconnected clients, and the start and end of the process, are normal.
    """
    assert unforeseen(f"{line}\n") == {}


def test_a_traceback_is_found_once() -> None:
    """
    It does not matter which frame caused it.
    """
    failure = "2026-11-21T14:00:00+0000 [kgateway.server.dispatch.Dispatcher#critical] X of frame-%d failed\n\t%s\n"
    log = "".join(failure % (number, f"Traceback\n\tKeyError: {number}") for number in range(3))
    assert list(unforeseen(log)) == ["KeyError: N"]
    assert len(unforeseen(log + failure % (1, "ValueError"))) == 2
    assert unforeseen("Unhandled error in Deferred:\n")
