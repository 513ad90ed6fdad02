"""
`kgateway groups reset-offsets`: have a group go on reading elsewhere. Without --execute it only shows what would be.
All is done or, where a partition has no place to go to, nothing.
"""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from kgateway.cli.control import as_json, table
from kgateway.cli.groups_aim import add_aims, aims
from kgateway.cli.groups_file import offsets_in
from kgateway.cli.groups_plan import Move, Wanted, plan
from kgateway.cli.layout import counted, number_or_dash, right_aligned
from kgateway.cli.refused import Refused
from kgateway.cli.topic_partitions import topic_partitions
from kgateway.client.cluster import Cluster
from kgateway.client.groups import described
from kgateway.client.offsets import Partition, commit, committed, extents, partitions_of
from kgateway.wire.errors import ErrorCode, KafkaError

_HEADINGS = ("TOPIC", "PARTITION", "FROM", "TO", "LAG", "NOTE")
_NAMED_MAX = 3
_LIMITS = (255, 9, 20, 20, 20, 80)
EXAMPLE = "kgateway groups reset-offsets billing --topic orders --to-earliest --execute"


def add_arguments(parser: ArgumentParser) -> None:
    """
    What can be asked for.
    """
    parser.add_argument("group", metavar="GROUP", type=_group_id, help="its id; it must have no members")
    add_aims(parser)
    parser.add_argument(
        "--topic",
        metavar="TOPIC[:N,N]",
        type=topic_partitions,
        action="append",
        default=[],
        help="only this topic, or these partitions of it; may be repeated. Else all that the group has committed",
    )
    parser.add_argument("--execute", action="store_true", help="do it")
    parser.set_defaults(check=partial(_check, parser))


def _check(parser: ArgumentParser, options: Namespace) -> None:
    if options.from_file and options.topic:
        parser.error("--from-file and --topic: the file says which partitions")


def run(options: Namespace, cluster: Cluster) -> Iterator[str]:
    """
    The plan, and whether it was carried out.
    """
    _refuse_members(cluster, options.group)
    known = cluster.settled(partial(committed, cluster, options.group))
    offsets = {partition: one.offset for partition, one in known.items()}
    moves = _moves(options, cluster, offsets)
    aimed = {move.partition: move.aim for move in moves if move.aim is not None}
    stuck = [f"{move.partition}: {move.note}" for move in moves if move.aim is None]
    # All or nothing, as Kafka's tool does: who mends the command and gives it again shifts no partition twice.
    executed = options.execute and not stuck
    if executed:
        _execute(cluster, options.group, aimed)
    if options.json:
        yield as_json(_told(options.group, executed, moves))
    else:
        yield from _table(moves)
        yield from [] if stuck else ["", _summary(options, moves)]
    if stuck:
        raise Refused("; ".join([*stuck, "nothing is changed"]))


def _refuse_members(cluster: Cluster, group_id: str) -> None:
    try:
        group = cluster.settled(partial(described, cluster, group_id))
    except KafkaError as error:
        if error.code is ErrorCode.GROUP_ID_NOT_FOUND:  # offsets can be set for a group that is to come
            return
        raise
    if group.members:
        clients = sorted({f"{member.client_id or 'a client'} at {member.host}" for member in group.members})
        named = ", ".join([*clients[:_NAMED_MAX], *(["..."] if len(clients) > _NAMED_MAX else [])])
        count = counted(len(group.members), "member")
        raise Refused(f"group {group_id} has {count} ({named}), which would go on where they are: stop them first")


def _moves(options: Namespace, cluster: Cluster, offsets: Mapping[Partition, int]) -> list[Move]:
    if options.from_file:
        wanted = {one: Wanted(offset) for one, offset in offsets_in(options.from_file, options.group).items()}
        return plan(wanted, offsets, cluster.settled(partial(extents, cluster, wanted)))
    partitions = _named(options.topic, cluster) if options.topic else list(offsets)
    if not partitions:
        raise Refused(f"group {options.group} has committed nothing: name a topic with --topic")
    logs = cluster.settled(partial(extents, cluster, partitions))
    nothing = dict.fromkeys(partitions, Wanted(None))  # of those that are not there
    return plan(nothing | aims(options, cluster, offsets, logs), offsets, logs)


def _named(topics: Sequence[tuple[str, list[int]]], cluster: Cluster) -> list[Partition]:
    known = cluster.settled(partial(partitions_of, cluster, [name for name, _ in topics]))
    unknown = dict.fromkeys(name for name, _ in topics if name not in known)
    if unknown:
        raise Refused(f"there is no topic {', '.join(unknown)}; nothing is changed")
    partitions: list[Partition] = []
    for name, indexes in topics:
        partitions += [Partition(name, index) for index in indexes] or known[name]
    return partitions


def _execute(cluster: Cluster, group_id: str, aimed: Mapping[Partition, int]) -> None:
    try:
        cluster.settled(partial(commit, cluster, group_id, aimed))
    except KafkaError as error:
        if error.code is ErrorCode.UNKNOWN_MEMBER_ID:
            raise Refused(f"group {group_id} has members by now: stop them first; nothing is changed") from error
        raise


def _table(moves: list[Move]) -> list[str]:
    numbers = [tuple(map(number_or_dash, (move.partition.index, move.committed, move.aim, move.lag))) for move in moves]
    headings, *rows = right_aligned(_HEADINGS[1:5], numbers)
    cells = [(move.partition.topic, *row, move.note) for move, row in zip(moves, rows, strict=True)]
    last = _HEADINGS[5] if any(move.note for move in moves) else ""
    return table((_HEADINGS[0], *headings, last), _LIMITS, cells)


def _summary(options: Namespace, moves: list[Move]) -> str:
    what, lag = f"{counted(len(moves), 'offset')} of group {options.group}", sum(move.lag or 0 for move in moves)
    if options.execute:
        return f"{what} {'is' if len(moves) == 1 else 'are'} set, which leaves a lag of {lag}"
    return f"{what} would be set, which would leave a lag of {lag}; nothing is changed: add --execute to do it"


def _told(group_id: str, executed: bool, moves: list[Move]) -> dict[str, Any]:
    partitions = [
        {
            "topic": move.partition.topic,
            "partition": move.partition.index,
            "from": move.committed,
            "to": move.aim,
            "lag": move.lag,
            "note": move.note,
        }
        for move in moves
    ]
    return {"group": group_id, "executed": executed, "partitions": partitions}


def _group_id(text: str) -> str:
    if not text:  # other clients may commit as this one, so `describe` and `delete` know it
        raise ArgumentTypeError("an empty group id: is a variable of the shell not set?")
    return text
