"""
The settings, as a table and as a page.
"""

import re
import shlex
from pathlib import Path

import pytest

from kgateway.cli.options import as_markdown, as_text
from kgateway.config.listeners import Advertised
from kgateway.config.settings import OPTIONS, Settings, read_settings
from kgateway.config.sources import Option

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"
ROWS = pytest.mark.parametrize("row", OPTIONS.values(), ids=OPTIONS)
TOML, *SHELL = re.findall(r"```(?:toml|sh)\n(.*?)```", PAGE.read_text(), re.DOTALL)
WITH_FILE, VARIABLES, LISTENERS = SHELL


def test_the_configuration_page_matches_the_table() -> None:
    """
    docs/configuration.md is the output of `kgateway options --markdown`.
    """
    assert as_markdown() + "\n" == PAGE.read_text()


@ROWS
def test_each_setting_has_a_line_of_the_page(row: Option) -> None:
    """
    The line has name, default, meaning, allowed values and Kafka's name.
    """
    (line,) = [line for line in as_markdown().splitlines() if line.startswith(f"| `{row.name}` |")]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    default, kafka = (f"`{text}`" if text else "none" for text in (row.shown_default, row.kafka))
    assert cells[1:] == [default, row.meaning, row.allowed, kafka]


@ROWS
def test_each_setting_has_a_line_on_a_terminal(row: Option) -> None:
    """
    The line has the option, its value and its default in 80 columns.
    """
    (line,) = [line for line in as_text().splitlines() if line.startswith(f"{row.flag} ")]
    assert line.split() == [row.flag, row.kind.metavar, *row.shown_default.split()]
    assert len(line.rstrip()) == len(line) <= 80


def arguments(command: str) -> list[str]:
    """
    The arguments behind the subcommand.
    """
    words = shlex.split(command.replace("\\\n", " "))
    return words[words.index("kgateway") + 1 :]


def test_the_example_file_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The page's command reads the page's file.
    """
    monkeypatch.chdir(tmp_path)
    Path("gateway.toml").write_text(TOML)
    settings = read_settings(arguments(WITH_FILE), {})
    assert (settings.log_level, settings.num_partitions, settings.max_idle_ms) == ("debug", 8, 1_800_000)


def test_the_example_environment_is_the_example_file(tmp_path: Path) -> None:
    """
    Both examples of the page give the same settings.
    """
    file = tmp_path / "gateway.toml"
    file.write_text(TOML)
    of_file = read_settings([], {"KGATEWAY_CONFIG": str(file)})
    of_environment = read_settings([], dict(line.split("=", 1) for line in VARIABLES.split()))
    rest = OPTIONS.keys() - {"config"}
    assert {name: getattr(of_file, name) for name in rest} == {name: getattr(of_environment, name) for name in rest}
    assert of_environment != Settings()


def test_the_example_of_several_listeners_works() -> None:
    """
    It has two names, and an advertised address for one of them.
    """
    settings = read_settings(arguments(LISTENERS), {})
    assert [listener.name for listener in settings.listen] == ["internal", "external"]
    assert settings.advertise == (Advertised("external", "kafka.example.org", 443),)
