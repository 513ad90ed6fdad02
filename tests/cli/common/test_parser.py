"""
Command lines.
"""

import pytest

from kgateway.cli.common.errors import MISTAKE, UsageError
from kgateway.cli.common.parser import Parser


def test_an_option_with_several_names_shows_its_value_once() -> None:
    """
    The names are separated by commas; an abbreviation that fits several of them is not ambiguous.
    """
    parser = Parser(prog="test")
    parser.add_argument("-b", "--bootstrap", "--bootstrap-server", metavar="HOST", help="where")
    assert "  -b, --bootstrap, --bootstrap-server HOST\n" in parser.format_help()
    assert parser.parse_args(["--boot", "kafka"]).bootstrap == "kafka"


def test_unknown_arguments_can_be_collected() -> None:
    """
    They keep their order; the options of the command itself may stand between them.
    """
    parser = Parser()
    parser.add_argument("--folder")
    parser.unknown_dest = "gateway"
    options = parser.parse_args(["--listen", "tcp:1", "--folder", "here", "--node-id=2"])
    assert (options.folder, options.gateway) == ("here", ["--listen", "tcp:1", "--node-id=2"])


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


@pytest.mark.parametrize("given", [["a", "b"], ["-t", "a", "-t", "b"], ["b", "--topic", "a"]])
def test_names_are_arguments_or_options(given: list[str]) -> None:
    """
    Both are one list.
    """
    parser = Parser()
    parser.add_names("topics", "-t", "--topic", metavar="TOPIC", help="which")
    assert parser.parse_args(given).topics == ["a", "b"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([], "error: the following arguments are required: GROUP"),
        (["a", "-g", "b"], "error: unexpected argument 'a': see test --help"),
    ],
)
def test_one_name_may_be_needed(given: list[str], says: str) -> None:
    parser = Parser(prog="test")
    parser.add_names("group", "-g", "--group", metavar="GROUP", is_one=True, help="which")
    assert parser.parse_args(["-g", "a"]).group == parser.parse_args(["a"]).group == "a"
    with pytest.raises(UsageError) as mistake:
        parser.parse_args(given)
    assert (mistake.value.exit_code, str(mistake.value)) == (MISTAKE, says)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["do", "a", "--flga"], "error: there is no option --flga; did you mean --flag?"),
        (["do", "a", "--zzz=1"], "error: there is no option --zzz; test do --help lists them"),
        (["do"], "error: the following arguments are required: first"),
        (["do", "a", "--flag=1"], "error: argument --flag: it has no value, but '1' is given"),
        (
            ["do", "a", "--form", "jsn"],
            "error: argument -f/--form: 'jsn' must be one of json, text; did you mean json?",
        ),
        (["do", "a", "--form", "xml"], "error: argument -f/--form: 'xml' must be one of json, text"),
        (["do", "--flga"], "error: there is no option --flga; did you mean --flag?"),
        (["do", "--frm=json", "-f", "json"], "error: there is no option --frm; did you mean --form?"),
        (["--flag", "do", "a b"], "error: options come after the command: test do 'a b' --flag"),
        (["--form", "text", "do", "a"], "error: options come after the command: test do a --form text"),
        (["do", "--color", "a"], "error: there is no option --color; test do --help lists them"),
        (["dou", "a"], "error: there is no command 'dou'; did you mean do?"),
        (["xyz", "a"], "error: there is no command 'xyz'; test --help lists them"),
        (["--hepl"], "error: there is no option --hepl; did you mean --help?"),
        (["bare", "a"], "error: unexpected argument 'a': see test bare --help"),
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
    command.add_argument("-f", "--form", choices=["json", "text"])
    commands.add_parser("bare")
    with pytest.raises(UsageError) as mistake:
        parser.parse_args(given)
    assert (mistake.value.exit_code, str(mistake.value)) == (MISTAKE, says)
