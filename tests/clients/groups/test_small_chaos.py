"""
The chaos of `test_chaos.py` in small, for the default suite: a few members, of the Python clients, and what befalls
them in a fixed order, each step when the one before has had its effect.
"""

from random import Random

from kgateway.messages.offset_commit import OffsetCommitRequest
from kgateway.testing.pytest_plugin import StartKafka
from kgateway.wire.errors import ErrorCode
from tests.clients.client import PATIENCE_S
from tests.clients.groups.at_work import GroupAtWork, free_of_accidents
from tests.clients.groups.chaos import HEARTBEAT_INTERVAL_MS, SERVER_OPTIONS, SESSION_TIMEOUT_MS
from tests.clients.groups.kinds import CONFLUENT, KAFKA_PYTHON
from tests.clients.groups.members.telling import Wanted
from tests.clients.groups.observer import details
from tests.faults.client import Client

_GROUP = "small-chaos"
_TOPICS = {"wide": 8, "narrow": 4}
_WORK_MS = 100
_LONG_MS = SESSION_TIMEOUT_MS - 2_000  # who stands still amid it is shut out only when it is over
_LONG_AGO = 0  # no member has an epoch like that
_COMMIT_VERSION = 9


def test_small_chaos(start_kafka: StartKafka) -> None:
    """
    A member is killed amid its work, two stand still amid theirs until others have taken over, some of whom have only
    then joined: no record is left out, nothing is accepted of who was shut out, and in the end all are members.
    """
    kafka = start_kafka(*SERVER_OPTIONS)
    how = Wanted(
        kafka.bootstrap, _GROUP, [*_TOPICS], "eager", SESSION_TIMEOUT_MS, HEARTBEAT_INTERVAL_MS, work_ms=_WORK_MS
    )
    group = GroupAtWork(kafka.port, how, _TOPICS, Random(1))
    crew = group.crew
    with free_of_accidents(kafka), group, Client(kafka.port) as client:
        killed = crew.start(CONFLUENT, first_work_ms=_LONG_MS)
        frozen = [crew.start(KAFKA_PYTHON, first_work_ms=_LONG_MS)]
        crew.wait(group.is_shared, "a group of the classic protocol")
        assert {commit_of_long_ago(client, member) for member in members(client)} == {ErrorCode.ILLEGAL_GENERATION}
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
        assert {commit_of_long_ago(client, member) for member in at_first | members(client)} == {
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
    The ids of those in the group.
    """
    return {member.member_id for member in details(client, _GROUP).members}


def commit_of_long_ago(client: Client, member: str) -> int:
    """
    What is said to a commit in the name of a member, in an epoch that is over.
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
