"""
The `kgateway` command.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence

from kgateway import __version__
from kgateway.cli.commands import COMMANDS, add_commands, name_of
from kgateway.cli.common.errors import FAILED, INTERRUPTED, MISTAKE, CommandError, Unwritable
from kgateway.cli.common.json_document import Json, is_wanted, lines
from kgateway.cli.common.parser import Parser
from kgateway.cli.common.stdio import escape_unencodable, give_up_stdout, open_missing_files, writing
from kgateway.observe.printable import printable

_WHAT = "a Kafka-protocol server in Python on Twisted."

# Packages that are imported only where a command needs them, and the extra that brings each.
_EXTRAS = dict.fromkeys(("pyspark", "pyarrow", "numpy", "pandas", "fastavro"), "spark")
_EXTRAS |= dict.fromkeys(("h2", "google", "OpenSSL", "service_identity"), "seaweedmq")


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Run a command; without one, list them.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["serve"]:
        return _serve(given[1:])
    open_missing_files()
    escape_unencodable()
    try:
        _print(lines_of(given))
    except BrokenPipeError:  # the reader, `head` say, has seen enough
        give_up_stdout()
    except Unwritable as error:
        give_up_stdout()
        print(f"{' '.join(['kgateway', *given[:1]])}: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def lines_of(given: Sequence[str]) -> Iterator[str]:
    """
    Run a command, and give its output line by line. Where it fails the reason is printed, and the program ends.
    """
    command = name_of(given)
    try:
        yield from lines(_output(given), command.removeprefix("kgateway "), is_wanted(given))
    except CommandError as error:
        print(printable(f"{command}: {error}"), file=sys.stderr)
        raise SystemExit(error.exit_code) from error


def _output(given: Sequence[str]) -> Iterator[str | Json]:
    try:
        options = parser(given).parse_args(given)
        yield from _overview() if options.command is None else options.run(options)
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        brings = f"`pip install kgateway[{extra}]` brings it"
        raise CommandError(f"{error.name} is not installed; {brings}", MISTAKE) from error


def parser(given: Sequence[str] | None) -> Parser:
    """
    The parser with the arguments of the given command, or of all commands.
    """
    made = Parser(prog="kgateway", description=f"A{_WHAT[1:]}")
    made.add_argument("--version", action="version", version=f"kgateway {__version__}")
    add_commands(made.add_subparsers(dest="command", metavar="COMMAND"), COMMANDS, given)
    return made


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
            read_settings(options, os.environ)  # twistd would print a mistake below a page of help
    except SettingsError as mistake:
        print(f"kgateway serve: {mistake}", file=sys.stderr)
        return MISTAKE
    from twisted.scripts.twistd import run

    # Without a pid file two may run in one folder, and the data folder has a lock of its own.
    sys.argv = ["kgateway serve", "-n", "--pidfile=", "kgateway", *options]
    run()
    return 0


def _overview() -> list[str]:
    commands = [f"  kgateway {name:<13} {entry.purpose}" for name, entry in COMMANDS.items()]
    return [f"kgateway {__version__}: {_WHAT}", "", *commands, "", "`kgateway COMMAND --help` says more."]
