"""
Every command and subcommand of `kgateway`: what it is for, and the module that has it.

A module is imported only where its command is called for, so that each starts as fast as it can. It holds the command
as a constant: `topics.changes` holds `DELETE_RECORDS`, which is `kgateway topics delete-records`.
"""

from argparse import Namespace, _SubParsersAction
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import NamedTuple, NoReturn

from kgateway.cli.common.errors import UsageError
from kgateway.cli.common.parser import Command, Parser


class Entry(NamedTuple):
    """
    One command. Its first sentence is shown where commands are listed.
    """

    purpose: str
    module: str = ""
    subcommands: Mapping[str, "Entry"] = {}


_TOPICS = {
    "list": Entry(
        "list topics with their partitions, records and sizes. Records are counted by offsets, including those that "
        "compaction has removed.",
        "topics.overview",
    ),
    "describe": Entry("show topics, their partitions, and the configs that are set", "topics.overview"),
    "create": Entry("create topics. Omitted values use the server's defaults.", "topics.changes"),
    "alter": Entry(
        "give topics more partitions. Records stay where they are, but new records of a key may go to another "
        "partition than the old ones.",
        "topics.changes",
    ),
    "delete": Entry("delete topics with all their records", "topics.changes"),
    "delete-records": Entry("delete the oldest records of topics, up to an offset or a time", "topics.changes"),
    "purge": Entry("delete all current records of topics, and keep the topics", "topics.changes"),
}
_CONFIGS = {
    "describe": Entry("show the configs of a topic, a broker or a group", "configs"),
    "set": Entry("set configs of a topic, a broker or a group: all of them or, if one is refused, none", "configs"),
    "append": Entry("add values to configs that are lists", "configs"),
    "subtract": Entry("remove values from configs that are lists", "configs"),
    "unset": Entry("reset configs of a topic, a broker or a group to their defaults", "configs"),
    "diff": Entry("compare the configs of two topics", "configs"),
}
_GROUPS = {
    "list": Entry("list groups with their types and states", "groups.overview"),
    "describe": Entry("show groups, their members, offsets and lag", "groups.overview"),
    "reset-offsets": Entry(
        "change the committed offsets of a group. Without --execute it only shows what would change. If one partition "
        "has no target, nothing is changed.",
        "groups.changes",
    ),
    "delete": Entry("delete groups without members, and their committed offsets", "groups.changes"),
}
_TRANSACTIONS = {
    "list": Entry("list transactional ids with their states", "transactions"),
    "describe": Entry("show the producer of a transactional id, and its transaction", "transactions"),
    "abort": Entry(
        "abort an open transaction and fence its producer, or abort a hanging transaction of a partition",
        "transactions",
    ),
}
_LOG = {
    "check": Entry(
        "check the files of a log. It changes nothing, and may run beside the gateway. Each line says where something "
        "is wrong, what, and what to do. Exit code 0: nothing is wrong; 1: something is; 2: it cannot be read.",
        "log",
    ),
    "dump": Entry(
        "show the batches of a log. It changes nothing, and may run beside the gateway. PATH may also be an index, a "
        "snapshot or a leader epoch file. Times are UTC.",
        "log",
    ),
}
_SPARK = {
    "archive": Entry("archive topics as folders of Parquet files, with checksums of their records", "spark.archive"),
    "verify": Entry(
        "check that archives have each offset once, and each record as it is in the log. Exit code 0: nothing is "
        "wrong; 1: something is; 2: the check failed.",
        "spark.verification",
    ),
    "compact": Entry(
        "keep the latest value of each key, in a separate table or in the archive itself. Old records can also be "
        "removed from archives by time.",
        "spark.compact",
    ),
    "sql": Entry(
        "query topics. Each topic is a table of its archived records and of the later ones in the log. The result is "
        "shown, or written to a file or a topic.",
        "spark.sql",
    ),
    "report": Entry(
        "report on the content of topics, as one HTML page with plots: volume over time, sizes, keys, the lag of "
        "groups, and, where it is known, the latency from the producer to the log",
        "spark.report",
    ),
    "backfill": Entry(
        "load files (Parquet, JSON, CSV) into a topic. Each row becomes one record, and rows of a key keep their "
        "order; an interrupted run continues when it is repeated. At the end it marks where live records begin.",
        "spark.backfill",
    ),
}
_SEAWEEDMQ = {
    "dev": Entry(
        "start a throw-away cluster with a gateway in front of it, to try things out; Ctrl-C stops all of it",
        "seaweedmq.dev",
    ),
    "verify": Entry(
        "check that log files are intact, and that the ledgers, which map Kafka's offsets, agree with them",
        "seaweedmq.verification",
    ),
    "stats": Entry(
        "show the state of topics: ledgers, times, offsets, what is in files, and who publishes", "seaweedmq.stats"
    ),
    "mapping": Entry("show which message of SeaweedMQ holds one of Kafka's offsets", "seaweedmq.mapping"),
}
GROUPS: Mapping[str, Mapping[str, Entry]] = {
    "Server": {
        "serve": Entry("run a gateway in the foreground: `twistd -n kgateway`", "serve"),
        "options": Entry("show the settings of a gateway", "options"),
        "topic-configs": Entry("show the configs of topics, and what each does here", "topic_configs"),
        "apis": Entry("list the Kafka APIs and versions that the wire codec knows", "apis"),
    },
    "Running gateway": {
        "clients": Entry("list the connections of clients, one per line", "gateway.clients"),
        "why": Entry("show why requests of clients were refused", "gateway.why"),
        "plugins": Entry("show which handler serves each API", "gateway.plugins"),
        "loglevel": Entry("show or set the log level", "gateway.loglevel"),
        "profile": Entry("show where a gateway spends its time", "gateway.profile"),
    },
    "Topics and records": {
        "topics": Entry("list, create, alter and delete topics of any Kafka server", "", _TOPICS),
        "configs": Entry("show and change configs on any Kafka server", "", _CONFIGS),
        "produce": Entry("send lines, files or JSON to a topic of any Kafka server", "produce.command"),
        "consume": Entry("print the records of topics of any Kafka server", "consume.command"),
    },
    "Groups and transactions": {
        "groups": Entry("show, reset and delete groups on any Kafka server", "", _GROUPS),
        "transactions": Entry("list, describe and abort transactions of any Kafka server", "", _TRANSACTIONS),
    },
    "Storage and analysis": {
        "log": Entry("check or show the files in which records are stored", "", _LOG),
        "spark": Entry("archive, query and report on topics of any Kafka server", "", _SPARK),
        "seaweedmq": Entry("inspect a SeaweedMQ cluster, or start a throw-away one", "", _SEAWEEDMQ),
    },
    "Command line": {
        "clusters": Entry("list the clusters of kgateway.toml, and which one is used", "clusters"),
        "completion": Entry("complete command lines in bash, zsh and fish", "completion"),
    },
}
COMMANDS: Mapping[str, Entry] = {name: entry for entries in GROUPS.values() for name, entry in entries.items()}


def overview() -> str:
    """
    All commands in their groups, a line for each.
    """
    width = max(map(len, COMMANDS)) + 1
    groups = [
        "\n".join([f"{title}:", *(f"  {name:<{width}} {entry.purpose}" for name, entry in entries.items())])
        for title, entries in GROUPS.items()
    ]
    return "\n\n".join(groups)


def add_commands(group: "_SubParsersAction[Parser]", entries: Mapping[str, Entry], given: Sequence[str] | None) -> None:
    """
    Add commands to a parser, with the arguments of the one that is given, or of all.
    """
    chosen = next((word for word in given or [] if not word.startswith("-")), None)
    for name, entry in entries.items():
        parser = group.add_parser(name, help=entry.purpose.partition(". ")[0], description=entry.purpose)
        if given is not None and name != chosen:
            continue
        if entry.subcommands:
            parser.set_defaults(run=partial(_refuse_without, entry.subcommands))
            kinds = parser.add_subparsers(dest="kind", metavar="COMMAND")
            add_commands(kinds, entry.subcommands, given and given[given.index(name) + 1 :])
        elif entry.module:
            module = import_module(f"kgateway.cli.{entry.module}")
            command: Command = getattr(module, name.upper().replace("-", "_"))
            command.add_to(parser)


def _refuse_without(subcommands: Iterable[str], options: Namespace) -> NoReturn:
    raise UsageError(f"name a command: {', '.join(subcommands)}")


def name_of(given: Sequence[str]) -> str:
    """
    The command that is given, as messages name it.
    """
    names, entries = ["kgateway"], COMMANDS
    for word in given:
        if word in entries:
            names.append(word)
            entries = entries[word].subcommands
    return " ".join(names)
