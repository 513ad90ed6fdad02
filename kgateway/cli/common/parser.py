"""
Command lines in which options may stand anywhere, also between a topic and its files, and in which a mistake is one
line on stderr.
"""

from argparse import PARSER, REMAINDER, ArgumentParser, HelpFormatter, Namespace
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple, NoReturn

from kgateway.cli.common.errors import UsageError
from kgateway.cli.common.json_document import OPTION, Json

JSON_HELP = "print JSON, with all that is known"
_HEADING = "example:\n"


class Command(NamedTuple):
    """
    A command or subcommand, which adds its arguments to a parser and yields the lines to print or, with --json, an
    object. Where `has_json` is False there is no such option, or it is one of the command's own.
    """

    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], Iterable[str | Json]]
    has_json: bool = True

    def add_to(self, parser: ArgumentParser) -> None:
        self.add_arguments(parser)
        if self.has_json:
            parser.add_argument(OPTION, action="store_true", help=JSON_HELP)
        parser.set_defaults(run=self.run)


class Parser(ArgumentParser):
    """
    Python's parser takes the names in front of an option for all there are, unless it is asked to let them intermix;
    with subcommands it refuses to be asked.
    """

    _is_within = False

    def parse_known_args(  # type: ignore[override]  # of its several forms this is the one that is used
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        if self._takes_all_that_follows or self._is_within:
            return super().parse_known_args(args, namespace)
        self._is_within = True  # the intermixed parse calls this method for its parts
        try:
            options, unknown = self.parse_known_intermixed_args(args, namespace)
        finally:
            self._is_within = False
        if unknown:
            self._refuse(unknown[0])
        return options, unknown

    @property
    def _takes_all_that_follows(self) -> bool:
        return any(action.nargs in {PARSER, REMAINDER} for action in self._get_positional_actions())

    def error(self, message: str) -> NoReturn:
        raise UsageError(message)

    def _refuse(self, unknown: str) -> NoReturn:
        name = unknown.partition("=")[0]
        if not name.startswith("-"):
            self.error(f"{name!r} is one too many: {self.prog} --help tells what there may be")
        near = get_close_matches(name, self._option_string_actions, n=1)
        self.error(f"there is no option {name}; " + (f"did you mean {near[0]}?" if near else f"{self.prog} --help"))


class _Formatter(HelpFormatter):
    """
    Keeps the line breaks of an example, which people copy.
    """

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith(_HEADING) else super()._fill_text(text, width, indent)


def add_example(parser: ArgumentParser, example: str) -> None:
    """
    End the help with lines for a shell. A test runs each of them.
    """
    parser.formatter_class = _Formatter
    parser.epilog = _HEADING + "\n".join(f"  $ {line}" for line in example.splitlines())


def page(
    as_text: Callable[[], str],
    as_markdown: Callable[[], str],
    as_json: Callable[[], Json],
    as_toml: Callable[[], str] | None = None,
) -> Command:
    """
    A command that prints a table for people or programs, the page of the documentation that is written from it or, of
    settings, a file to start from.
    """

    def add_arguments(parser: ArgumentParser) -> None:
        form = parser.add_mutually_exclusive_group()
        form.add_argument("--markdown", action="store_true", help="print the page of the documentation")
        form.add_argument(OPTION, action="store_true", help=JSON_HELP)
        if as_toml:
            form.add_argument("--toml", action="store_true", help="print a file of settings, with all defaults")

    def run(options: Namespace) -> list[str | Json]:
        if options.json:
            return [as_json()]
        if as_toml and options.toml:
            return [as_toml()]
        return [as_markdown() if options.markdown else as_text()]

    return Command(add_arguments, run, has_json=False)
