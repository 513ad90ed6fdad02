"""
Consumes as a member of a group: the assigned partitions, from the committed offsets on.
"""

import time
from argparse import Namespace
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from kgateway.cli.common.interrupts import Interrupts
from kgateway.cli.consume.output import Output
from kgateway.cli.consume.reader import Reader
from kgateway.client.cluster import Cluster
from kgateway.client.connection import Unanswered
from kgateway.client.group_offsets import committed_offsets
from kgateway.client.member import Member
from kgateway.topic_partition import TopicPartition
from kgateway.wire.errors import KafkaError

_COMMIT_S = 5.0
_PAUSE_S = 0.5
_LAST_S = 3.0  # for the last commit, and to leave, after an interrupt or an error


def read_as_member(
    options: Namespace, cluster: Cluster, output: Output, interrupts: Interrupts, note: Callable[[list[str]], None]
) -> None:
    """
    Read to the end or until an interrupt. Positions of written records are committed, at the latest before the member
    leaves, also after an error. An interrupt ends whatever waits for a server, such as a join, at once.
    """
    member = Member(cluster, options.group, options.topics)

    def reader_of(partitions: list[TopicPartition]) -> Reader:
        known = cluster.retry(partial(committed_offsets, cluster, options.group))
        begun = {one: known[one].offset for one in partitions if one in known}
        return Reader(options, cluster, partitions, output, interrupts, begun)

    try:
        while (partitions := interrupts.unless_interrupted(member.join)) is not None:
            reader = interrupts.unless_interrupted(partial(reader_of, partitions))
            if reader is None:
                break
            note(reader.notes)
            if _read(options, cluster, member, reader, interrupts):
                break
    except (KafkaError, Unanswered):
        cluster.limit_patience(_LAST_S)
        with suppress(KafkaError, Unanswered):
            member.leave()
        raise
    except BaseException:
        member.leave()
        raise
    if interrupts.came:
        cluster.limit_patience(_LAST_S)
    member.leave()


def _read(options: Namespace, cluster: Cluster, member: Member, reader: Reader, interrupts: Interrupts) -> bool:
    """
    Read to the end or until an interrupt; returns False if the member must join again.
    """
    commit_at = time.monotonic() + _COMMIT_S
    is_member = True
    try:
        while is_member and not interrupts.came:
            if not reader.is_over:
                reader.step()
            elif options.follow and options.count is None and options.until is None:
                interrupts.rest(_PAUSE_S)  # other members have all partitions; one of them may leave
            else:
                break
            is_member = interrupts.unless_interrupted(member.beat) is not False
            if time.monotonic() >= commit_at or not is_member:
                commit_at = time.monotonic() + _COMMIT_S
                is_member = interrupts.unless_interrupted(partial(_commit, member, reader)) is not False and is_member
    except (KafkaError, Unanswered):
        cluster.limit_patience(_LAST_S)
        with suppress(KafkaError, Unanswered):
            _commit(member, reader)
        raise
    if interrupts.came:
        cluster.limit_patience(_LAST_S)
    return is_member and _commit(member, reader)


def _commit(member: Member, reader: Reader) -> bool:
    """
    Commit positions that have changed; returns False if the group no longer knows this member.
    """
    is_member = member.commit(reader.reached)
    reader.reached = {}
    return is_member
