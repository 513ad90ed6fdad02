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
        "all topics, with how much is in them. Records are counted by offsets, so those that compaction has removed "
        "count too.",
        "topics.overview",
    ),
    "describe": Entry("a topic, its partitions, and the configs that were set.", "topics.overview"),
    "create": Entry("create topics. Omitted values use the server's defaults.", "topics.changes"),
    "alter": Entry(
        "give topics more partitions. Records stay where they are, but the same key may belong to another partition "
        "from then on.",
        "topics.changes",
    ),
    "delete": Entry("delete topics with all they hold.", "topics.changes"),
    "delete-records": Entry("delete the oldest records of topics, up to an offset or a time.", "topics.changes"),
    "purge": Entry("delete all records that are in topics now, and keep the topics.", "topics.changes"),
}
_CONFIGS = {
    "describe": Entry("what was set for a topic, a broker or a group.", "configs"),
    "set": Entry(
        "set configs of a topic, a broker or a group: all that are named or, where one is refused, none.", "configs"
    ),
    "append": Entry("add to configs that are lists.", "configs"),
    "subtract": Entry("take from configs that are lists.", "configs"),
    "unset": Entry("give configs of a topic, a broker or a group their defaults back.", "configs"),
    "diff": Entry("in which configs two topics differ.", "configs"),
}
_GROUPS = {
    "list": Entry("all groups, with their types and states.", "groups.overview"),
    "describe": Entry("a group, its members and how far they have read.", "groups.overview"),
    "reset-offsets": Entry(
        "have a group go on reading elsewhere. Without --execute it only shows what would be. All is done or, where a "
        "partition has no place to go to, nothing.",
        "groups.changes",
    ),
    "delete": Entry("forget groups that have no members, and all they have committed.", "groups.changes"),
}
_TRANSACTIONS = {
    "list": Entry("all transactional ids, with their states.", "transactions"),
    "describe": Entry("the producer of a transactional id, and its transaction.", "transactions"),
    "abort": Entry(
        "end an open transaction, and shut its producer out; or one that hangs in a partition.", "transactions"
    ),
}
_LOG = {
    "check": Entry(
        "Check the files of a log. It changes nothing, and may run beside the gateway. Each line says where something "
        "is wrong, what, and what to do. Exit code 0: nothing is wrong; 1: something is; 2: it cannot be read.",
        "log",
    ),
    "dump": Entry(
        "Show the batches of a log. It changes nothing, and may run beside the gateway. PATH may also be an index, a "
        "snapshot or a leader epoch file. Times are UTC.",
        "log",
    ),
}
_SPARK = {
    "archive": Entry("topics into folders of Parquet files, with proof of what is in them.", "spark.archive"),
    "verify": Entry(
        "whether archives have each offset once, and each record as the log has it. Exit code 0: nothing is wrong; 1: "
        "something is; 2: it cannot be said.",
        "spark.verification",
    ),
    "compact": Entry(
        "the latest value of each key, as a table of its own, or as what stays in an archive. Archives can also be cut "
        "by time.",
        "spark.compact",
    ),
    "sql": Entry(
        "a query of topics. Each topic is a table, of what is archived and what the log has behind it; what it gives "
        "is shown, or goes to a file or into a topic.",
        "spark.sql",
    ),
    "report": Entry(
        "what is in topics, as one page of HTML with plots. Volume over time, sizes, keys, the lag of groups, and how "
        "long records took to the log where that is known.",
        "spark.report",
    ),
    "backfill": Entry(
        "files (Parquet, JSON, CSV) into a topic. Each row becomes a record, once, those of a key in their order; run "
        "again it goes on where it was cut off. In the end it marks where live records begin.",
        "spark.backfill",
    ),
}
_SEAWEEDMQ = {
    "dev": Entry(
        "Start a throw-away cluster with a gateway before it, to try things out; Ctrl-C ends all of it.",
        "seaweedmq.dev",
    ),
    "verify": Entry(
        "Check whether log files are whole, and the ledgers, which map Kafka's offsets, agree with them.",
        "seaweedmq.verification",
    ),
    "stats": Entry(
        "Show how topics stand: ledgers, times, offsets, what is in files, and who publishes.", "seaweedmq.stats"
    ),
    "mapping": Entry("Show which message of SeaweedMQ holds one of Kafka's offsets.", "seaweedmq.mapping"),
}
GROUPS: Mapping[str, Mapping[str, Entry]] = {
    "Server": {
        "serve": Entry("run a gateway in the foreground: `twistd -n kgateway`", "serve"),
        "options": Entry("what can be set when a gateway starts", "options"),
        "topic-configs": Entry("which configs topics have, and what each does here", "topic_configs"),
        "apis": Entry("the Kafka APIs and versions that the wire codec knows", "apis"),
    },
    "Running gateway": {
        "clients": Entry("who is connected to a running gateway, doing what", "gateway.clients"),
        "why": Entry("what clients of a running gateway were refused, and why", "gateway.why"),
        "plugins": Entry("which handler serves each API in a running gateway", "gateway.plugins"),
        "loglevel": Entry("show or set how much a running gateway logs", "gateway.loglevel"),
        "profile": Entry("where a running gateway spends its time", "gateway.profile"),
    },
    "Topics and records": {
        "topics": Entry("list, create, alter and delete topics of any Kafka server", "", _TOPICS),
        "configs": Entry("configs of topics, brokers and groups of any Kafka server", "", _CONFIGS),
        "produce": Entry("send lines, files or JSON to a topic of any Kafka server", "produce.command"),
        "consume": Entry("print the records of topics of any Kafka server", "consume.command"),
    },
    "Groups and transactions": {
        "groups": Entry("members, lag and offsets of groups of any Kafka server", "", _GROUPS),
        "transactions": Entry("list, describe, abort transactions of any Kafka server", "", _TRANSACTIONS),
    },
    "Storage and analysis": {
        "log": Entry("check or show the files in which records are kept", "", _LOG),
        "spark": Entry("Spark on topics of any Kafka server: archives, queries, reports", "", _SPARK),
        "seaweedmq": Entry("a SeaweedMQ cluster, and a throw-away one to try things out on", "", _SEAWEEDMQ),
    },
    "Command line": {
        "clusters": Entry("the named clusters of kgateway.toml, and which one is used", "clusters"),
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
        title = entry.purpose.partition(".")[0]
        parser = group.add_parser(name, help=title[0].lower() + title[1:], description=entry.purpose)
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
