"""
The `kgateway` command.
"""

import gc
import os
import sys
from argparse import SUPPRESS
from collections.abc import Iterable, Iterator, Sequence

from kgateway import __version__
from kgateway.cli.commands import COMMANDS, add_commands, name_of, overview
from kgateway.cli.common.errors import FAILED, INTERRUPTED, MISTAKE, CommandError, Unwritable, print_error
from kgateway.cli.common.json_document import Json, lines
from kgateway.cli.common.parser import Parser
from kgateway.cli.common.stdio import escape_unencodable, give_up_stdout, open_missing_files, writing
from kgateway.compilation import form
from kgateway.extras import not_installed

_WHAT = "a Kafka-protocol server in Python on Twisted."
_MORE = "`kgateway COMMAND --help` says more."
_YOUNG_ONLY = 700, 10, 1_000_000  # thresholds of the garbage collection: all objects are looked at only once young


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Run a command; without one, list them.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if "_ARGCOMPLETE" in os.environ:
        from kgateway.cli.completion import complete, words_before_cursor

        complete(parser(words_before_cursor()))
    if given[:1] == ["serve"] and not {"-h", "--help"} & set(given):
        return _serve(given[1:])
    open_missing_files()
    escape_unencodable()
    try:
        _print(lines_of(given))
    except BrokenPipeError:  # the reader, `head` say, has seen enough
        give_up_stdout()
    except Unwritable as error:
        give_up_stdout()
        print_error(name_of(given), str(error))
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
        yield from lines(_output(given), command.removeprefix("kgateway "), lambda: parser(given).wants_json(given))
    except CommandError as error:
        _flush()  # the reason comes last, also where stdout and stderr are the same file
        print_error(command, str(error))
        raise SystemExit(error.exit_code) from error


def _output(given: Sequence[str]) -> Iterator[str | Json]:
    try:
        options = parser(given).parse_args(given)
        if options.command is None:
            yield f"kgateway {__version__}: {_WHAT}\n\n{overview()}\n\n{_MORE}"
            return
        yield from options.run(options)
    except ModuleNotFoundError as error:
        advice = not_installed(error)
        if advice is None:
            raise
        raise CommandError(advice, MISTAKE) from error


def parser(given: Sequence[str] | None) -> Parser:
    """
    The parser with the arguments of the given command, or of all commands.
    """
    made = Parser(
        prog="kgateway",
        usage="%(prog)s [-h] [--version] COMMAND ...",
        description=f"A{_WHAT[1:]}",
        epilog=f"{overview()}\n\n{_MORE}",
    )
    made.add_argument("--version", action="version", version=f"kgateway {__version__} ({form()})")
    add_commands(made.add_subparsers(dest="command", prog="kgateway", help=SUPPRESS), COMMANDS, given)
    return made


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        with writing():
            print(line)
    with writing():
        sys.stdout.flush()


def _flush() -> None:
    """
    Write what is printed. A reader that has seen enough does not hide the failure of the command.
    """
    try:
        with writing():
            sys.stdout.flush()
    except BrokenPipeError:
        give_up_stdout()


def _serve(options: Sequence[str]) -> int:
    # Without a pid file two may run in one folder, and the data folder has a lock of its own.
    sys.argv = ["kgateway serve", "-n", "--pidfile=", "kgateway", *options]
    gc.set_threshold(*_YOUNG_ONLY)  # until the gateway has started: full collections took a fifth of the time till then
    try:
        from kgateway.server.process.tls import leave_out_tls

        leave_out_tls(options, os.environ)
        from twisted.scripts.twistd import run

        run()
    except KeyboardInterrupt:  # before the reactor handles signals
        return INTERRUPTED
    return 0
