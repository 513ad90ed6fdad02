"""
The `kgateway` command and its subcommands.

A subcommand's modules are imported when it is called for, so that each one starts as fast as it can.
"""

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module

from kgateway import __version__
from kgateway.cli.parsing import Parser
from kgateway.cli.standard import Unwritable, give_up_stdout, stand_in, writing

_WHAT = f"kgateway {__version__}: a Kafka-protocol server in Python on Twisted."

# Those with a page to print have it in a module of their name, `as_text` and `as_markdown`; the others have
# `add_arguments` and `run` there, which gives a text or line after line. `serve` is twistd.
_PAGES = {
    "options": "what can be set when a gateway starts",
    "topic-configs": "which configs topics have, and what each does here",
    "apis": "the Kafka APIs and versions that the wire codec knows",
}
_QUESTIONS = {
    "clients": "who is connected to a running gateway, and what is done for them",
    "why": "what clients of a running gateway were refused, and why",
    "plugins": "which handler serves each API in a running gateway",
    "loglevel": "show or set how much a running gateway logs",
    "profile": "where a running gateway spends its time",
}
_CLUSTERS = {"seaweedmq": "a SeaweedMQ cluster, and a throw-away one to try things out on"}
_SERVERS = {
    "topics": "topics of any Kafka server: list, describe, create, widen, delete",
    "configs": "configs of topics, brokers and groups of any Kafka server",
    "produce": "send records to a topic of any Kafka server, from lines, files or JSON",
    "consume": "print the records of topics of any Kafka server",
    "groups": "consumer groups of any Kafka server: their members, lag and offsets",
    "transactions": "transactions of any Kafka server: which are open, and where; ends them",
}
_FILES = {"log": "check or show the files in which records are kept"}
_JOBS = {"spark": "jobs of Spark on topics of any Kafka server: archives, queries, reports"}
_SERVE = {"serve": "run a gateway in the foreground: `twistd -n kgateway`, with its options"}
_COMMANDS = _SERVE | _QUESTIONS | _SERVERS | _FILES | _JOBS | _CLUSTERS | _PAGES


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Run a subcommand; without one, say what there is.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["serve"]:
        return _serve(given[1:])
    stand_in()
    options = _parser(given).parse_args(given)
    try:
        _print(_lines(options))
    except BrokenPipeError:  # the reader, `head` say, has seen enough
        give_up_stdout()
    except Unwritable as error:
        give_up_stdout()
        print(f"kgateway{f' {options.command}' if options.command else ''}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        with writing():
            print(line)
    with writing():
        sys.stdout.flush()


def _serve(options: Sequence[str]) -> int:
    from kgateway.config.settings import read_settings
    from kgateway.config.sources import SettingsError

    try:
        if not {"--help", "--version"} & set(options):
            read_settings(options, os.environ)  # twistd would tell of a mistake below a page of help
    except SettingsError as mistake:
        print(f"kgateway serve: {mistake}", file=sys.stderr)
        return 2
    from twisted.scripts.twistd import run

    # Without a pid file two may run in one folder, and the data folder has a lock of its own.
    sys.argv = ["kgateway serve", "-n", "--pidfile=", "kgateway", *options]
    run()
    return 0


def _parser(given: Sequence[str]) -> argparse.ArgumentParser:
    parser = Parser(prog="kgateway", description="A Kafka-protocol server in Python on Twisted.")
    parser.add_argument("--version", action="version", version=f"kgateway {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, purpose in _COMMANDS.items():
        command = commands.add_parser(name, help=purpose, description=purpose)
        if name in _PAGES:
            command.add_argument("--markdown", action="store_true", help="print the page of the documentation")
        elif given[:1] == [name]:
            import_module(f"kgateway.cli.{name}").add_arguments(command)
    return parser


def _lines(options: argparse.Namespace) -> Iterable[str]:
    """
    What there is to print; of a long work each line when it is known.
    """
    if options.command is None:
        return [_overview()]
    module = import_module(f"kgateway.cli.{options.command.replace('-', '_')}")
    if options.command in _PAGES:
        return [module.as_markdown() if options.markdown else module.as_text()]
    told: str | Iterable[str] = module.run(options)
    return [told] if isinstance(told, str) else told


def _overview() -> str:
    commands = [f"  kgateway {name:<13} {purpose}" for name, purpose in _COMMANDS.items()]
    return "\n".join([_WHAT, "", *commands, "", "`kgateway COMMAND --help` says more."])
