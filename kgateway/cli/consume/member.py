"""
Consumes as a member of a group: the assigned partitions, from the committed offsets on.
"""

import time
from argparse import Namespace
from collections.abc import Callable
from functools import partial

from kgateway.cli.common.interrupts import Interrupts
from kgateway.cli.consume.output import Output
from kgateway.cli.consume.reader import Reader
from kgateway.client.cluster import Cluster
from kgateway.client.group_offsets import committed_offsets
from kgateway.client.member import Member

_COMMIT_S = 5.0
_PAUSE_S = 0.5


def read_as_member(
    options: Namespace, cluster: Cluster, output: Output, interrupts: Interrupts, note: Callable[[list[str]], None]
) -> None:
    """
    Read to the end or until an interrupt. Positions of written records are committed, at the latest before the member
    leaves. A join may wait minutes for other members, and is interrupted at once.
    """
    member = Member(cluster, options.group, options.topics)
    try:
        while (partitions := interrupts.unless_interrupted(member.join)) is not None:
            known = cluster.retry(partial(committed_offsets, cluster, options.group))
            begun = {one: known[one].offset for one in partitions if one in known}
            reader = Reader(options, cluster, partitions, output, interrupts, begun)
            note(reader.notes)
            if _read(options, member, reader, interrupts):
                return
    finally:
        member.leave()


def _read(options: Namespace, member: Member, reader: Reader, interrupts: Interrupts) -> bool:
    """
    Read to the end or until an interrupt; returns False if the member must join again.
    """
    commit_at = time.monotonic() + _COMMIT_S
    is_member = True
    while is_member and not interrupts.came:
        if not reader.is_over:
            reader.step()
        elif options.follow and options.count is None and options.until is None:
            interrupts.rest(_PAUSE_S)  # other members have all partitions; one of them may leave
        else:
            break
        is_member = member.beat()
        if time.monotonic() >= commit_at or not is_member:
            commit_at = time.monotonic() + _COMMIT_S
            is_member = _commit(member, reader) and is_member
    return is_member and _commit(member, reader)


def _commit(member: Member, reader: Reader) -> bool:
    """
    Commit positions that have changed; returns False if the group no longer knows this member.
    """
    reached, reader.reached = reader.reached, {}
    return member.commit(reached)
