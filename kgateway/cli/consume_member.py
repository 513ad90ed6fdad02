"""
Reads as a member of a group: what the group gives it, from where the group has come to.
"""

import time
from argparse import Namespace
from collections.abc import Callable
from functools import partial

from kgateway.cli.consume_output import Output
from kgateway.cli.consume_reading import Reading
from kgateway.cli.interrupts import Interrupts
from kgateway.client.cluster import Cluster
from kgateway.client.member import Member
from kgateway.client.offsets import committed

_COMMIT_S = 5.0
_PAUSE_S = 0.5


def read_as_member(
    options: Namespace, cluster: Cluster, output: Output, interrupts: Interrupts, note: Callable[[list[str]], None]
) -> None:
    """
    Until there is nothing left or somebody wants an end. What is written out is committed, at the latest when the
    member leaves.
    """
    member = Member(cluster, options.group, options.topics)
    try:
        while not interrupts.came:
            partitions = member.join()
            known = cluster.settled(partial(committed, cluster, options.group))
            begun = {one: known[one].offset for one in partitions if one in known}
            reading = Reading(options, cluster, partitions, output, interrupts, begun)
            note(reading.notes)
            if _read(options, member, reading, interrupts):
                return
    finally:
        member.leave()


def _read(options: Namespace, member: Member, reading: Reading, interrupts: Interrupts) -> bool:
    """
    Whether all is read; otherwise the group shares out anew.
    """
    commit_at = time.monotonic() + _COMMIT_S
    is_member = True
    while is_member and not interrupts.came:
        if not reading.is_over:
            reading.step()
        elif options.follow and options.count is None and options.until is None:
            interrupts.rest(_PAUSE_S)  # others have all partitions; one of them may go
        else:
            break
        is_member = member.beat()
        if time.monotonic() >= commit_at or not is_member:
            commit_at = time.monotonic() + _COMMIT_S
            is_member = _commit(member, reading) and is_member
    return is_member and _commit(member, reading)


def _commit(member: Member, reading: Reading) -> bool:
    """
    Whether it was still this member's to do; what is committed need not be again.
    """
    reached, reading.reached = reading.reached, {}
    return member.commit(reached)
