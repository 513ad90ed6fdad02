"""
Command lines in which options may stand anywhere, also between a topic and its files. A mistake is one line on stderr,
with a suggestion if something similar exists.
"""

import re
import shlex
import sys
from argparse import PARSER, Action, ArgumentError, ArgumentParser, HelpFormatter, Namespace, _SubParsersAction
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from itertools import takewhile
from typing import Any, NamedTuple, NoReturn

from kgateway.cli.common.errors import UsageError
from kgateway.cli.common.json_document import OPTION, Json
from kgateway.cli.common.stdio import writing

JSON_DEST = "json"
JSON_HELP = "print JSON with all details"
_OPTION = re.compile(r"-[^\s\d][^\s]*$")  # and not a negative number, such as an offset from the end
_SIMILARITY_MIN = 0.75  # of suggestions: `set` is none for `get`, nor `--cluster` for `--color`
_OF_VALUE = re.compile(r"ignored explicit argument ('.*'|\".*\")$", re.DOTALL)  # what argparse calls --flag=value


class Command(NamedTuple):
    """
    A command or subcommand, which adds its arguments to a parser and yields the lines to print or, with --json, an
    object. Where `has_json` is False there is no such option, or it is one of the command's own.
    """

    add_arguments: Callable[["Parser"], None]
    run: Callable[[Namespace], Iterable[str | Json]]
    has_json: bool = True

    def add_to(self, parser: "Parser") -> None:
        self.add_arguments(parser)
        if self.has_json:
            parser.add_argument(OPTION, action="store_true", help=JSON_HELP)
        parser.set_defaults(run=self.run)


class _Names(NamedTuple):
    dest: str
    metavar: str
    is_needed: bool
    is_one: bool


class _Formatter(HelpFormatter):
    """
    Lists the names of an option before its value, which is written once. Text of several lines keeps its line breaks.
    """

    def _format_action_invocation(self, action: Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {value}"

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


class Parser(ArgumentParser):
    """
    Python's parser takes the names in front of an option for all there are, unless it is asked to let them intermix;
    with subcommands it refuses to be asked.
    """

    unknown_dest = ""  # where unknown arguments are collected; without it they are refused
    _is_within = False

    def __init__(self, **given: Any) -> None:
        super().__init__(formatter_class=_Formatter, **given)
        self._names: list[_Names] = []

    def add_names(
        self, dest: str, *flags: str, metavar: str, is_needed: bool = True, is_one: bool = False, **given: Any
    ) -> None:
        """
        Names that may be given as arguments or, as Kafka's tools have it, by an option. They are one list; with
        `is_one` there is one name, and no list.
        """
        self._names.append(_Names(dest, metavar, is_needed or is_one, is_one))
        kind = given.get("type", str)
        self.add_argument(dest, metavar=metavar, nargs="*", action="extend", **given)
        self.add_argument(
            *flags, dest=dest, metavar=metavar, action="append", type=kind, help=f"{metavar}, given as an option"
        )

    def parse_known_args(  # type: ignore[override]  # of its several forms this is the one that is used
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        if self._is_within:  # the intermixed parse calls this method for its parts
            return super().parse_known_args(args, namespace)
        given = list(sys.argv[1:] if args is None else args)
        commands = next((action for action in self._get_positional_actions() if action.nargs == PARSER), None)
        if commands:
            self._refuse_early_options(given, commands)
            options, unknown = super().parse_known_args(given, namespace)
        else:
            options, unknown = self._parse_intermixed(given, namespace)
        if self.unknown_dest:
            setattr(options, self.unknown_dest, unknown)
        elif unknown:
            self._refuse(unknown[0])
        return options, []

    def _parse_intermixed(self, given: Sequence[str], namespace: Any) -> tuple[Any, list[str]]:
        self._is_within = True
        try:
            options, unknown = self.parse_known_intermixed_args(given, namespace)
            self._check_names(options)
        except UsageError:
            self._refuse_unknown_option(given)  # what seems to be missing may be misspelt
            raise
        finally:
            self._is_within = False
        return options, unknown

    def _refuse_early_options(self, given: Sequence[str], commands: Action) -> None:
        """
        UsageError if options of a command stand in front of its name.
        """
        at = next((number for number, word in enumerate(given) if word in (commands.choices or ())), 0)
        if any(self._is_unknown_option(word) for word in given[:at]):
            corrected = shlex.join([*self.prog.split(), *given[at:], *given[:at]])
            self.error(f"options come after the command: {corrected}")

    def _refuse_unknown_option(self, given: Sequence[str]) -> None:
        if self.unknown_dest:
            return
        for word in takewhile(lambda word: word != "--", given):
            if self._is_unknown_option(word):
                self._refuse(word)

    def _is_unknown_option(self, word: str) -> bool:
        return bool(_OPTION.match(word)) and not self._get_option_tuples(word)

    def wants_json(self, args: Sequence[str]) -> bool:
        """
        Whether --json is given by any of its names, to this command or to the subcommand that is given, whatever
        mistakes there are beside it.
        """
        words = args[: args.index("--")] if "--" in args else args
        commands = {name: one for action in self._subcommands() for name, one in action.choices.items()}
        chosen = next((commands[word] for word in words if word in commands), None)
        return chosen.wants_json(words) if chosen else any(map(self._is_json, words))

    def _subcommands(self) -> "list[_SubParsersAction[Parser]]":
        return [action for action in self._actions if isinstance(action, _SubParsersAction)]

    def _is_json(self, word: str) -> bool:
        """
        Whether a word is --json, an abbreviation of it, an alias, or has one among the letters of several options.
        """
        known = self._option_string_actions
        if word.startswith("--"):
            fitting = [known[word]] if word in known else [found[0] for found in self._get_option_tuples(word)]
            return word == OPTION or [action.dest for action in fitting] == [JSON_DEST]
        for letter in word[1:] if word.startswith("-") else "":
            action = known.get(f"-{letter}")
            if action is None or action.nargs != 0:  # the rest is its value
                return False
            if action.dest == JSON_DEST:
                return True
        return False

    def _check_names(self, options: Namespace) -> None:
        for names in self._names:
            given = getattr(options, names.dest)
            if names.is_needed and not given:
                self.error(f"the following arguments are required: {names.metavar}")
            if names.is_one and len(given) > 1:
                self._refuse(given[1])
            setattr(options, names.dest, given[0] if names.is_one else given)

    def error(self, message: str) -> NoReturn:
        raise UsageError(_OF_VALUE.sub(r"it has no value, but \1 is given", message))

    def _print_message(self, message: str, file: Any = None) -> None:
        if file is not sys.stdout:
            super()._print_message(message, file)
            return
        with writing():  # the help or the version; depending on its version argparse hides that this fails
            file.write(message)
            file.flush()

    def _get_option_tuples(self, option_string: str) -> Any:
        """
        An abbreviation that fits several names of one option is not ambiguous.
        """
        return [*{found[0]: found for found in super()._get_option_tuples(option_string)}.values()]

    def _check_value(self, action: Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        near = _suggestion(str(value), map(str, action.choices))
        if isinstance(action, _SubParsersAction):
            raise ArgumentError(None, f"there is no command {value!r}; {near or f'{self.prog} --help lists them'}")
        known = ", ".join(map(str, action.choices))
        raise ArgumentError(action, f"{value!r} must be one of {known}{near and f'; {near}'}")

    def _refuse(self, unknown: str) -> NoReturn:
        name = unknown.partition("=")[0]
        if not name.startswith("-"):
            self.error(f"unexpected argument {name!r}: see {self.prog} --help")
        near = _suggestion(name, self._option_string_actions)
        self.error(f"there is no option {name}; {near or f'{self.prog} --help lists them'}")


def _suggestion(word: str, known: Iterable[str]) -> str:
    near = get_close_matches(word, [*known], n=1, cutoff=_SIMILARITY_MIN)
    return f"did you mean {near[0]}?" if near else ""


def add_example(parser: ArgumentParser, example: str) -> None:
    """
    End the help with lines for a shell. A test runs each of them.
    """
    parser.epilog = example_text(example)


def example_text(example: str) -> str:
    return "example:\n" + "\n".join(f"  $ {line}" for line in example.splitlines())


def page(
    as_text: Callable[[], str],
    as_markdown: Callable[[], str],
    as_json: Callable[[], Json],
    example: str,
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
            form.add_argument(
                "--toml", action="store_true", help="print a file with all settings, defaults and meanings"
            )
        add_example(parser, example)

    def run(options: Namespace) -> list[str | Json]:
        if options.json:
            return [as_json()]
        if as_toml and options.toml:
            return [as_toml()]
        return [as_markdown() if options.markdown else as_text()]

    return Command(add_arguments, run, has_json=False)
