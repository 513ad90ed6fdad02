"""
`kgateway groups list` and `describe`: groups, their members, and how far they have read.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from typing import Any

from kgateway.cli.common.cluster import cluster_command, refuse_parts
from kgateway.cli.common.colours import Colour
from kgateway.cli.common.errors import Problem, UsageError
from kgateway.cli.common.json_document import Json, error_of
from kgateway.cli.common.output import NAME_MAX, Column, node_json, table
from kgateway.cli.common.parser import Parser
from kgateway.cli.common.values import add_groups, add_states
from kgateway.client.cluster import Cluster
from kgateway.client.group_offsets import PartitionLag, lags
from kgateway.client.groups import (
    CLASSIC,
    CONSUMER,
    TYPES,
    Assigned,
    GroupDescription,
    GroupListing,
    MemberDescription,
    describe_group,
    list_groups,
)
from kgateway.plurals import counted
from kgateway.wire.errors import KafkaError

_STATES = ("Empty", "Stable", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling", "Dead")
_STATE_COLOURS = dict.fromkeys(_STATES[2:-1], Colour.YELLOW) | {"Stable": Colour.GREEN, "Dead": Colour.RED}
_GROUPS = (
    Column("GROUP", NAME_MAX),
    Column("TYPE", 10),
    Column("STATE", 20, colours=_STATE_COLOURS),
    Column("PROTOCOL", 30),
    Column("COORDINATOR", 80),
)
_MEMBERS = (
    Column("MEMBER", NAME_MAX),
    Column("INSTANCE", NAME_MAX, is_optional=True),  # of static members
    Column("CLIENT", NAME_MAX),
    Column("HOST", 45),
    Column("ASSIGNMENT", 200),
    Column("TARGET", 200, is_optional=True),  # of members that have not reached it
)
_READINGS = (
    Column("TOPIC", NAME_MAX),
    Column("PARTITION", 9, is_number=True),
    Column("COMMITTED", 20, is_number=True),
    Column("END", 20, is_number=True),
    Column("LAG", 20, is_number=True),
    Column("MEMBER", NAME_MAX),
)
_KNOWN_HERE = (CLASSIC, CONSUMER, "")  # an old server does not tell the type, and has classic groups alone


def _add_list(parser: ArgumentParser) -> None:
    parser.add_argument("--type", choices=TYPES, action="append", help="only groups of this type; may be repeated")
    add_states(parser, _STATES, "groups")


def _list(options: Namespace, cluster: Cluster) -> Iterator[str | Json]:
    known = cluster.retry(partial(list_groups, cluster))
    types, states = options.type, options.state
    matching = [one for one in known if (not types or one.type in types) and (not states or one.state in states)]
    if options.json:
        yield {"groups": [_listed_json(group) for group in matching]}
    elif matching:
        yield from table(_GROUPS, [_listed(group) for group in matching])
    else:
        yield f"no group matches ({counted(len(known), 'group')} in all)" if known else "there are no groups"


LIST = cluster_command(_add_list, _list, "kgateway groups list --state Empty")


def _listed(group: GroupListing) -> tuple[object, ...]:
    return group.group_id, group.type or None, group.state or None, group.protocol_type or None, group.coordinator


def _listed_json(group: GroupListing) -> dict[str, Any]:
    return {
        "group": group.group_id,
        "type": group.type,
        "state": group.state,
        "protocol_type": group.protocol_type,
        "coordinator": node_json(group.coordinator),
    }


def _add_describe(parser: Parser) -> None:
    add_groups(parser, is_needed=False, help="the id of a group")
    parser.add_argument("--all", action="store_true", help="all classic and consumer groups")


def _check_describe(options: Namespace) -> None:
    if bool(options.groups) == options.all:
        raise UsageError("name groups, or add --all")


def _describe(options: Namespace, cluster: Cluster) -> Iterator[str | Json]:
    rows: list[Json] = []
    problems: dict[str, Problem] = {}
    for number, group_id in enumerate(_wanted(options, cluster)):
        try:
            group = cluster.retry(partial(describe_group, cluster, group_id))
            readings = cluster.retry(partial(lags, cluster, group))
        except KafkaError as error:
            problem = problems[f"group {group_id!r}"] = Problem.of(error)
            rows.append({"group": group_id} | error_of(problem))
            continue
        if options.json:
            rows.append(_json(group, readings))
        else:
            yield from [""] if number else []
            yield from group_text(group, readings)
    if options.json:
        yield {"groups": rows}
    refuse_parts(problems)


DESCRIBE = cluster_command(_add_describe, _describe, "kgateway groups describe billing", check=_check_describe)


def _wanted(options: Namespace, cluster: Cluster) -> list[str]:
    if options.all:
        known = cluster.retry(partial(list_groups, cluster))
        return [group.group_id for group in known if group.type in _KNOWN_HERE]
    return list(dict.fromkeys(options.groups))


def group_text(group: GroupDescription, readings: list[PartitionLag]) -> Iterator[str]:
    yield from _summary(group, readings)
    if group.members:
        yield ""
        yield from table(_MEMBERS, [_member(one) for one in group.members])
    if readings:
        yield ""
        yield from table(_READINGS, [_reading(one) for one in readings])


def _summary(group: GroupDescription, readings: list[PartitionLag]) -> Iterator[str]:
    protocol = f" of {group.protocol_type}" if group.protocol_type not in ("", CONSUMER) else ""
    facts = [f"{group.group_id}: {group.state}", f"{group.type} group{protocol}"]
    facts += [f"epoch {group.epoch}"] if group.epoch is not None else []
    facts += [f"assignor {group.assignor}"] if group.assignor else []
    yield ", ".join([*facts, f"coordinator {group.coordinator}"])
    yield f"{counted(len(group.members), 'member')}; {_lag(readings)}"


def _lag(readings: list[PartitionLag]) -> str:
    known = [one.lag for one in readings if one.lag is not None]
    unknown = counted(len(readings) - len(known), "partition")
    if readings and not known:
        return f"lag unknown in {unknown}"
    lag = f"lag {sum(known)} in {counted(len(known), 'partition')}"
    return lag if len(known) == len(readings) else f"{lag}, and unknown in {unknown}"


def _member(one: MemberDescription) -> tuple[str, ...]:
    target = "" if one.target is None or one.target == one.assigned else _shown(one.target)
    return one.member_id, one.instance_id or "", one.client_id, one.host, _shown(one.assigned), target


def _shown(assigned: Assigned | None) -> str:
    """
    Partitions in short form: orders 0-3,7; payments 0.
    """
    if assigned is None:
        return "in a format of its own"
    return "; ".join(f"{topic} {_spans(indexes)}" for topic, indexes in sorted(assigned.items())) or "-"


def _spans(indexes: list[int]) -> str:
    spans: list[list[int]] = []
    for index in indexes:
        if spans and spans[-1][1] == index - 1:
            spans[-1][1] = index
        else:
            spans.append([index, index])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)


def _reading(one: PartitionLag) -> tuple[object, ...]:
    committed = one.committed and one.committed.offset
    return one.partition.topic, one.partition.index, committed, one.end, one.lag, one.member_id or None


def _json(group: GroupDescription, readings: list[PartitionLag]) -> dict[str, Any]:
    return {
        "group": group.group_id,
        "type": group.type,
        "state": group.state,
        "protocol_type": group.protocol_type,
        "assignor": group.assignor,
        "epoch": group.epoch,
        "coordinator": node_json(group.coordinator),
        "members": [asdict(member) for member in group.members],
        "lag": sum(one.lag or 0 for one in readings),
        "partitions": [_reading_json(one) for one in readings],
    }


def _reading_json(reading: PartitionLag) -> dict[str, Any]:
    return {
        "topic": reading.partition.topic,
        "partition": reading.partition.index,
        "committed": reading.committed and reading.committed.offset,
        "metadata": reading.committed and reading.committed.metadata,
        "end": reading.end,
        "lag": reading.lag,
        "member_id": reading.member_id,
    }
