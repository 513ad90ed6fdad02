"""
A command line in which options may stand anywhere, also between a topic and its files, and in which a mistake is told
in one line.
"""

from argparse import PARSER, REMAINDER, ArgumentParser
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

_MISTAKE = 2  # exit code


class Parser(ArgumentParser):
    """
    Python's own takes the names that stand before an option for all there are, unless it is asked otherwise; of a
    command with subcommands it cannot be asked.
    """

    _is_within = False

    def parse_known_args(  # type: ignore[override]  # of its several forms this is the one that is used
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        if self._takes_all_that_follows or self._is_within:
            return super().parse_known_args(args, namespace)
        self._is_within = True  # it comes back here for its parts
        try:
            told, unknown = self.parse_known_intermixed_args(args, namespace)
        finally:
            self._is_within = False
        if unknown:
            self._refuse(unknown[0])
        return told, unknown

    @property
    def _takes_all_that_follows(self) -> bool:
        return any(action.nargs in {PARSER, REMAINDER} for action in self._get_positional_actions())

    def error(self, message: str) -> NoReturn:
        """
        End the program; --help has the rest.
        """
        self.exit(_MISTAKE, f"{self.prog}: error: {message}\n")

    def _refuse(self, unknown: str) -> NoReturn:
        name = unknown.partition("=")[0]
        if not name.startswith("-"):
            self.error(f"{name!r} is one too many: {self.prog} --help tells what there may be")
        near = get_close_matches(name, self._option_string_actions, n=1)
        self.error(f"there is no option {name}; " + (f"did you mean {near[0]}?" if near else f"{self.prog} --help"))
