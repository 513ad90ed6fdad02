"""
`kgateway topics create`, `alter`, `delete`, `delete-records` and `purge`.
"""

from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from kgateway.cli.common.cluster import Done, cluster_command, do_to_each, refuse_parts
from kgateway.cli.common.config_values import config_value
from kgateway.cli.common.errors import CommandError, Problem, UnknownTopicOrPartition, UsageError
from kgateway.cli.common.json_document import Json, error_of
from kgateway.cli.common.offset_spec import offset_spec, resolve
from kgateway.cli.common.output import NAME_MAX, Column, table
from kgateway.cli.common.parser import Parser
from kgateway.cli.common.stdio import confirm
from kgateway.cli.common.times import TIMES
from kgateway.cli.common.topic_names import all_topics, is_pattern, matching_topics
from kgateway.cli.common.values import add_topics, add_yes, new_topic, positive, refuse_repeated, topic_partitions
from kgateway.cli.topics.overview import contents
from kgateway.client.cluster import Cluster, refuse
from kgateway.client.offsets import Extent, extents
from kgateway.client.topics import (
    SERVERS_CHOICE,
    CreatedTopic,
    TopicDescription,
    create_partitions,
    create_topic,
    delete_records,
    delete_topic,
)
from kgateway.plurals import counted
from kgateway.topic_partition import TopicPartition
from kgateway.wire.errors import ErrorCode, KafkaError

_COLUMNS = (
    Column("TOPIC", NAME_MAX),
    Column("PARTITION", 9, is_number=True),
    Column("DELETED", 20, is_number=True),
    Column("START", 20, is_number=True),
    Column("END", 20, is_number=True),
)
_REPLICAS_MAX = (1 << 15) - 1

_Start = tuple[int, Problem | None]  # where a log begins now, and why that is not where it was to begin


def _add_create(parser: Parser) -> None:
    add_topics(parser, metavar="NAME", type=new_topic, help="the name of a topic")
    parser.add_argument(
        "--partitions", metavar="N", type=positive, default=SERVERS_CHOICE, help="the number of partitions"
    )
    parser.add_argument(
        "--replicas",
        "--replication-factor",
        metavar="N",
        type=partial(positive, most=_REPLICAS_MAX),
        default=SERVERS_CHOICE,
        help="how many servers store each partition",
    )
    parser.add_argument(
        "--config",
        metavar="CONFIG=VALUE",
        type=config_value,
        action="append",
        default=[],
        help="a config to set, such as retention.ms=7d or segment.bytes=64MiB; may be repeated",
    )


def _create(options: Namespace, cluster: Cluster) -> Iterator[str | Json]:
    def work(name: str) -> Done:
        configs = {config.name: config.value for config in options.config}
        made = create_topic(cluster, name, options.partitions, options.replicas, configs)
        return Done(_difference(options, made), {"partitions": made.partitions, "replicas": made.replicas})

    return do_to_each(options, cluster, "topic", options.names, "created", work)


def _difference(options: Namespace, made: CreatedTopic) -> str:
    """
    What is not as it was given: values with units, and the number of replicas, which a gateway lowers to that of its
    nodes.
    """
    notes = [f"{config.name}={config.value}" for config in options.config if config.is_converted]
    if made.replicas is not None and options.replicas not in (SERVERS_CHOICE, made.replicas):
        notes.insert(0, f"{counted(made.replicas, 'replica')} instead of {options.replicas}")
    return f"with {', '.join(notes)}" if notes else ""


CREATE = cluster_command(
    _add_create,
    _create,
    "kgateway topics create orders --partitions 4 --config retention.ms=1d",
    check=lambda options: refuse_repeated([config.name for config in options.config]),
)


def _add_alter(parser: Parser) -> None:
    add_topics(parser, help="the name of a topic")
    parser.add_argument(
        "--partitions", metavar="N", type=positive, required=True, help="the new number, higher than the current one"
    )


def _alter(options: Namespace, cluster: Cluster) -> Iterator[str | Json]:
    names = [topic.name for topic in matching_topics(all_topics(cluster), options.names)]
    done = f"altered to {counted(options.partitions, 'partition')}"
    return do_to_each(
        options, cluster, "topic", names, done, lambda name: create_partitions(cluster, name, options.partitions)
    )


ALTER = cluster_command(_add_alter, _alter, "kgateway topics alter orders --partitions 6")


def _add_delete(parser: Parser) -> None:
    add_topics(parser, help="the name of a topic or, with --yes, a pattern such as 'order*'")
    add_yes(parser)


def _check_delete(options: Namespace) -> None:
    patterns = [name for name in options.names if is_pattern(name)]
    if patterns and not options.yes:
        seen = f"`kgateway topics list {patterns[0]!r}` shows which topics match"
        raise UsageError(f"{patterns[0]} is a pattern: add --yes to delete all topics that match; {seen}")


def _delete(options: Namespace, cluster: Cluster) -> Iterator[str | Json]:
    wanted = matching_topics(all_topics(cluster), options.names)
    if not options.yes:
        held = contents(cluster, wanted)
        each = [f"{topic.name} with {counted(held[topic.name].records or 0, 'record')}" for topic in wanted]
        confirm(options, f"delete {', '.join(each)}")
    names = [topic.name for topic in wanted]
    return do_to_each(options, cluster, "topic", names, "deleted", partial(delete_topic, cluster))


DELETE = cluster_command(_add_delete, _delete, "kgateway topics delete orders --yes", check=_check_delete)


def _add_delete_records(parser: Parser) -> None:
    add_topics(parser, "topics", "TOPIC[:N,N]", type=topic_partitions, help="a topic, or some of its partitions")
    parser.add_argument(
        "--before",
        metavar="PLACE",
        type=offset_spec,
        required=True,
        help=f"the first record to keep: an offset, -N for the last N, end, or the first one since {TIMES}",
    )
    add_yes(parser)


def _delete_records(options: Namespace, cluster: Cluster) -> Iterator[str | Json]:
    known = all_topics(cluster)
    matching_topics(known, [name for name, _ in options.topics])  # names all that do not exist
    wanted = _partitions(options, known)
    logs = cluster.retry(partial(extents, cluster, wanted))
    found = resolve(cluster, options.before, logs)
    starts = {one: logs[one].end if offset is None else offset for one, offset in found.items()}
    beyond = [f"{one} ends at {logs[one].end}" for one, offset in starts.items() if offset > logs[one].end]
    if beyond:
        raise CommandError(f"{', '.join(beyond)}: nothing beyond the end can be deleted; nothing was done")
    return _delete_before(options, cluster, starts, logs)


DELETE_RECORDS = cluster_command(
    _add_delete_records,
    _delete_records,
    "kgateway topics delete-records orders:0 --before 2026-11-21T18:25:08Z --yes",
)


def _partitions(options: Namespace, known: Mapping[str, TopicDescription]) -> list[TopicPartition]:
    wanted: dict[TopicPartition, None] = {}
    for name, indexes in options.topics:
        for topic in matching_topics(known, [name]):
            wanted |= dict.fromkeys(_partitions_of(topic, indexes))
    return [*wanted]


def _partitions_of(topic: TopicDescription, indexes: Sequence[int]) -> list[TopicPartition]:
    existing = [part.partition for part in topic.parts]
    named = [TopicPartition(topic.name, index) for index in indexes] or existing
    missing = [str(one) for one in named if one not in existing]
    if missing:
        raise UnknownTopicOrPartition(
            f"there is no partition {', '.join(missing)}: {topic.name} has {len(existing)}; nothing was done"
        )
    return named


def _add_purge(parser: Parser) -> None:
    add_topics(parser, help="the name of a topic")
    add_yes(parser)


def _purge(options: Namespace, cluster: Cluster) -> Iterator[str | Json]:
    wanted = matching_topics(all_topics(cluster), options.names)
    partitions = [part.partition for topic in wanted for part in topic.parts]
    logs = cluster.retry(partial(extents, cluster, partitions))
    return _delete_before(options, cluster, {one: extent.end for one, extent in logs.items()}, logs)


PURGE = cluster_command(_add_purge, _purge, "kgateway topics purge orders --yes")


def _delete_before(
    options: Namespace, cluster: Cluster, before: Mapping[TopicPartition, int], logs: Mapping[TopicPartition, Extent]
) -> Iterator[str | Json]:
    """
    Delete the records before these offsets, and print the number of each partition.
    """
    doomed = {one: offset for one, offset in before.items() if offset > logs[one].start}
    lost = sum(offset - logs[one].start for one, offset in doomed.items())
    if doomed:
        confirm(options, f"delete {counted(lost, 'record')} from {', '.join(sorted({one.topic for one in doomed}))}")
    starts: dict[TopicPartition, _Start] = {one: (log.start, None) for one, log in logs.items()}
    starts |= cluster.retry(partial(_deleted, cluster, doomed, logs)) if doomed else {}
    rows = [_outcome(one, starts[one], logs[one]) for one in sorted(starts)]
    if options.json:
        yield {"partitions": rows}
    else:
        yield from table(_COLUMNS, [[row[column.heading.lower()] for column in _COLUMNS] for row in rows])
    refuse_parts({str(one): why for one, (_, why) in sorted(starts.items()) if why})


def _deleted(
    cluster: Cluster, doomed: Mapping[TopicPartition, int], logs: Mapping[TopicPartition, Extent]
) -> dict[TopicPartition, _Start]:
    starts: dict[TopicPartition, _Start] = {}
    for one, (code, start) in delete_records(cluster, doomed).items():
        try:
            refuse(code)
            starts[one] = start, None
        except KafkaError as error:
            if error.code.retriable:  # deleting again what is deleted changes nothing
                raise
            starts[one] = logs[one].start, _problem(error)
    return starts


def _problem(error: KafkaError) -> Problem:
    if error.code is ErrorCode.POLICY_VIOLATION:
        return Problem.of(error, f"{error}; its cleanup.policy does not include delete")
    return Problem.of(error)


def _outcome(one: TopicPartition, start: _Start, log: Extent) -> Json:
    now, why = start
    return {
        "topic": one.topic,
        "partition": one.index,
        "deleted": now - log.start,
        "start": now,
        "end": log.end,
    } | error_of(why)
