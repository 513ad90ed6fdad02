"""
`kgateway groups reset-offsets` and `delete`.
"""

from argparse import ArgumentTypeError, Namespace
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from kgateway.cli.common.cluster import cluster_command, do_to_each
from kgateway.cli.common.errors import CommandError, UnknownTopicOrPartition, UsageError
from kgateway.cli.common.json_document import Json
from kgateway.cli.common.output import NAME_MAX, Column, table
from kgateway.cli.common.parser import Parser
from kgateway.cli.common.values import add_groups, topic_partitions
from kgateway.cli.groups.offset_targets import Move, Target, add_targets, offsets_in, plan, targets_of
from kgateway.client.cluster import Cluster, partitions_of
from kgateway.client.group_offsets import commit_offsets, committed_offsets
from kgateway.client.groups import delete_group, describe_group
from kgateway.client.offsets import extents
from kgateway.plurals import counted
from kgateway.topic_partition import TopicPartition
from kgateway.wire.errors import ErrorCode, KafkaError

_COLUMNS = (
    Column("TOPIC", NAME_MAX),
    Column("PARTITION", 9, is_number=True),
    Column("FROM", 20, is_number=True),
    Column("TO", 20, is_number=True),
    Column("LAG", 20, is_number=True),
    Column("NOTE", 80, is_optional=True),
)
_NAMED_MAX = 3
_UNDELETED = {
    ErrorCode.NON_EMPTY_GROUP: "it has members; stop them first",
    ErrorCode.GROUP_ID_NOT_FOUND: "there is no such group",
}


def _add_delete(parser: Parser) -> None:
    add_groups(parser, help="the id of a group")


def _delete(options: Namespace, cluster: Cluster) -> Iterator[str | Json]:
    return do_to_each(options, cluster, "group", options.groups, "deleted", partial(delete_group, cluster), _UNDELETED)


DELETE = cluster_command(_add_delete, _delete, "kgateway groups delete billing")


def _add_reset_offsets(parser: Parser) -> None:
    add_groups(parser, "group", type=_group_id, is_one=True, help="the id of a group, which must have no members")
    add_targets(parser)
    parser.add_argument(
        "-t",
        "--topic",
        metavar="TOPIC[:N,N]",
        type=topic_partitions,
        action="append",
        default=[],
        help="only this topic, or these partitions of it; may be repeated (default all that the group has committed)",
    )
    effect = parser.add_mutually_exclusive_group()
    effect.add_argument("--execute", action="store_true", help="make the change")
    effect.add_argument(
        "--dry-run", action="store_false", dest="execute", help="only show what would change, as without --execute"
    )


def _check_reset_offsets(options: Namespace) -> None:
    if options.from_file and options.topic:
        raise UsageError("--from-file and --topic: the file says which partitions")


def _reset_offsets(options: Namespace, cluster: Cluster) -> Iterator[str | Json]:
    _refuse_members(cluster, options.group)
    known = cluster.retry(partial(committed_offsets, cluster, options.group))
    moves = _moves(options, cluster, {partition: one.offset for partition, one in known.items()})
    targets = {move.partition: move.target for move in moves if move.target is not None}
    stuck = [f"{move.partition}: {move.note}" for move in moves if move.target is None]
    # All or nothing, as Kafka's tool does: a corrected command that is given again shifts no partition twice.
    executed = options.execute and not stuck
    if executed:
        _execute(cluster, options.group, targets)
    if options.json:
        yield {"group": options.group, "executed": executed, "partitions": [_json(move) for move in moves]}
    else:
        yield from table(_COLUMNS, [[*_json(move).values()] for move in moves])
        yield from [] if stuck else ["", _summary(options, moves)]
    if stuck:
        raise CommandError("; ".join([*stuck, "nothing was changed"]))


RESET_OFFSETS = cluster_command(
    _add_reset_offsets,
    _reset_offsets,
    "kgateway groups reset-offsets billing --topic orders --to-earliest --execute",
    check=_check_reset_offsets,
)


def _refuse_members(cluster: Cluster, group_id: str) -> None:
    try:
        group = cluster.retry(partial(describe_group, cluster, group_id))
    except KafkaError as error:
        if error.code is ErrorCode.GROUP_ID_NOT_FOUND:  # offsets can be set for a group that is to come
            return
        raise
    if group.members:
        clients = sorted({f"{member.client_id or 'a client'} at {member.host}" for member in group.members})
        named = ", ".join([*clients[:_NAMED_MAX], *(["..."] if len(clients) > _NAMED_MAX else [])])
        count = counted(len(group.members), "member")
        raise CommandError(
            f"group {group_id} has {count} ({named}), which would keep their current positions: stop them first"
        )


def _moves(options: Namespace, cluster: Cluster, offsets: Mapping[TopicPartition, int]) -> list[Move]:
    if options.from_file:
        targets = {one: Target(offset) for one, offset in offsets_in(options.from_file, options.group).items()}
        return plan(targets, offsets, cluster.retry(partial(extents, cluster, targets)))
    partitions = _named(options.topic, cluster) if options.topic else list(offsets)
    if not partitions:
        raise CommandError(f"group {options.group} has committed nothing: name a topic with --topic")
    logs = cluster.retry(partial(extents, cluster, partitions))
    missing = dict.fromkeys(partitions, Target(None))
    return plan(missing | targets_of(options, cluster, offsets, logs), offsets, logs)


def _named(topics: Sequence[tuple[str, list[int]]], cluster: Cluster) -> list[TopicPartition]:
    known = cluster.retry(partial(partitions_of, cluster, [name for name, _ in topics]))
    unknown = dict.fromkeys(name for name, _ in topics if name not in known)
    if unknown:
        raise UnknownTopicOrPartition(f"there is no topic {', '.join(unknown)}; nothing was changed")
    partitions: list[TopicPartition] = []
    for name, indexes in topics:
        partitions += [TopicPartition(name, index) for index in indexes] or known[name]
    return partitions


def _execute(cluster: Cluster, group_id: str, targets: Mapping[TopicPartition, int]) -> None:
    try:
        cluster.retry(partial(commit_offsets, cluster, group_id, targets))
    except KafkaError as error:
        if error.code is ErrorCode.UNKNOWN_MEMBER_ID:
            raise CommandError(f"group {group_id} has members now: stop them first; nothing was changed") from error
        raise


def _summary(options: Namespace, moves: list[Move]) -> str:
    is_one, lag = len(moves) == 1, sum(move.lag or 0 for move in moves)
    what = f"{counted(len(moves), 'offset')} of group {options.group}"
    if options.execute:
        return f"{what} {'was' if is_one else 'were'} set, leaving a lag of {lag}"
    them = "it" if is_one else "them"
    return f"{what} would be set, leaving a lag of {lag}; nothing was changed: add --execute to set {them}"


def _json(move: Move) -> dict[str, Any]:
    return {
        "topic": move.partition.topic,
        "partition": move.partition.index,
        "from": move.committed,
        "to": move.target,
        "lag": move.lag,
        "note": move.note,
    }


def _group_id(text: str) -> str:
    if not text:  # other clients may commit with an empty id, so `describe` and `delete` know it
        raise ArgumentTypeError("an empty group id: is a shell variable unset?")
    return text
