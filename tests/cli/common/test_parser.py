"""
Command lines.
"""

import pytest

from kgateway.cli.common.errors import MISTAKE, UsageError
from kgateway.cli.common.parser import Parser


@pytest.mark.parametrize(
    "given",
    [
        ["do", "a", "b", "c", "--flag"],
        ["do", "--flag", "a", "b", "c"],
        ["do", "a", "--flag", "b", "c"],
        ["do", "a", "b", "--flag", "c"],
    ],
)
def test_options_may_stand_anywhere(given: list[str]) -> None:
    """
    Options may stand before, between and behind the arguments of a subcommand.
    """
    parser = Parser()
    command = parser.add_subparsers().add_parser("do")
    command.add_argument("first")
    command.add_argument("more", nargs="*")
    command.add_argument("--flag", action="store_true")
    told = parser.parse_args(given)
    assert (told.first, told.more, told.flag) == ("a", ["b", "c"], True)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["do", "a", "--flga"], "error: there is no option --flga; did you mean --flag?"),
        (["do", "a", "--zzz=1"], "error: there is no option --zzz; test do --help"),
        (["do"], "error: the following arguments are required: first"),
        (["do", "a", "--flag=1"], "error: argument --flag: ignored explicit argument '1'"),
        (["bare", "a"], "error: 'a' is one too many: test bare --help tells what there may be"),
    ],
)
def test_a_mistake_is_reported_in_a_line(given: list[str], says: str) -> None:
    """
    The line suggests what the user may mean.
    """
    parser = Parser(prog="test")
    commands = parser.add_subparsers()
    command = commands.add_parser("do")
    command.add_argument("first")
    command.add_argument("--flag", action="store_true")
    commands.add_parser("bare")
    with pytest.raises(UsageError) as mistake:
        parser.parse_args(given)
    assert (mistake.value.exit_code, str(mistake.value)) == (MISTAKE, says)
