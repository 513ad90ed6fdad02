"""
A small version of `test_chaos.py` for the default suite: a few members of the Python clients, and actions in a fixed
order, each after the previous one has had its effect.
"""

from random import Random

from kgateway.messages.offset_commit import OffsetCommitRequest
from kgateway.testing.pytest_plugin import StartKafka
from kgateway.wire.errors import ErrorCode
from tests.clients.client import PATIENCE_S
from tests.clients.groups.chaos import HEARTBEAT_INTERVAL_MS, SERVER_OPTIONS, SESSION_TIMEOUT_MS
from tests.clients.groups.kinds import CONFLUENT, KAFKA_PYTHON
from tests.clients.groups.members.reports import Wanted
from tests.clients.groups.observer import details
from tests.clients.groups.working_group import WorkingGroup, no_traceback_in
from tests.faults.client import Client

_GROUP = "small-chaos"
_TOPICS = {"wide": 8, "narrow": 4}
_WORK_MS = 100
_LONG_MS = SESSION_TIMEOUT_MS - 2_000  # a member frozen during a rebalance is fenced only when the rebalance is over
_LONG_AGO = 0  # no member has an epoch like that
_COMMIT_VERSION = 9


def test_small_chaos(start_kafka: StartKafka) -> None:
    """
    A member is killed during its work, and two are frozen until others, some of which have only just joined, have
    taken over: no record is left out, no commit of a fenced member is accepted, and in the end all are members.
    """
    kafka = start_kafka(*SERVER_OPTIONS)
    how = Wanted(
        kafka.bootstrap, _GROUP, [*_TOPICS], "eager", SESSION_TIMEOUT_MS, HEARTBEAT_INTERVAL_MS, work_ms=_WORK_MS
    )
    group = WorkingGroup(kafka.port, how, _TOPICS, Random(1))
    crew = group.crew
    with no_traceback_in(kafka), group, Client(kafka.port) as client:
        killed = crew.start(CONFLUENT, first_work_ms=_LONG_MS)
        frozen = [crew.start(KAFKA_PYTHON, first_work_ms=_LONG_MS)]
        crew.wait(group.is_shared, "a group of the classic protocol")
        assert {outdated_commit(client, member) for member in members(client)} == {ErrorCode.ILLEGAL_GENERATION}
        frozen.append(crew.start(CONFLUENT, protocol="consumer", first_work_ms=_LONG_MS))
        crew.start(CONFLUENT, protocol="consumer")
        crew.wait(group.is_shared, "a group of both protocols")
        at_first = members(client)
        group.write()
        crew.wait(lambda: all(member.is_at_work for member in (killed, *frozen)), "at work")
        killed.kill()
        for member in frozen:
            member.freeze()
        crew.start(CONFLUENT)
        crew.start(KAFKA_PYTHON)
        crew.wait(lambda: crew.shares(group.places), "taken over")
        for member in frozen:
            member.thaw()
        crew.wait(group.is_shared, "a group of all who live")
        assert {outdated_commit(client, member) for member in at_first | members(client)} == {
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.ILLEGAL_GENERATION,
            ErrorCode.STALE_MEMBER_EPOCH,
        }
        group.commit_further()
        wrong = group.finish(PATIENCE_S)
        print(group.summary)
        assert not wrong, "\n".join(wrong)


def members(client: Client) -> set[str]:
    """
    The ids of the members of the group.
    """
    return {member.member_id for member in details(client, _GROUP).members}


def outdated_commit(client: Client, member: str) -> int:
    """
    The response to a commit in the name of a member, in an epoch that is over.
    """
    partition = OffsetCommitRequest.Topic.Partition(partition_index=0, committed_offset=0, committed_metadata="")
    request = OffsetCommitRequest(
        group_id=_GROUP,
        generation_id_or_member_epoch=_LONG_AGO,
        member_id=member,
        topics=[OffsetCommitRequest.Topic(name="wide", partitions=[partition])],
    )
    (topic,) = client.ask(request, _COMMIT_VERSION).topics
    code: int = topic.partitions[0].error_code
    return code
