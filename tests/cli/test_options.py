"""
The settings, as a table and as a page.
"""

import re
import shlex
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kgateway.cli.options import as_markdown, as_text, as_toml
from kgateway.config.listeners import Advertised
from kgateway.config.settings import OPTIONS, Settings, read_settings
from kgateway.config.sources import Option
from kgateway.testing.kafka import Kafka

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"
ROWS = pytest.mark.parametrize("row", OPTIONS.values(), ids=OPTIONS)
TOML, *CONSOLE = re.findall(r"```(?:toml|console)\n(.*?)```", PAGE.read_text(), re.DOTALL)
WITH_FILE, VARIABLES, LISTENERS = CONSOLE


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


def test_the_table_has_headings_and_names_the_meanings() -> None:
    heading, *_, last = as_text().splitlines()
    assert heading.split() == ["OPTION", "DEFAULT"]
    assert "--toml" in last


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
    words = shlex.split(command.replace("\\\n", " ").partition("\n")[0])
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
    of_environment = read_settings([], dict(re.findall(r"^\$ export (\w+)=(.*)$", VARIABLES, re.MULTILINE)))
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


def uncommented(text: str) -> str:
    """
    The file of settings with each setting in force.
    """
    return re.sub("^#(?=[a-z])", "", text, flags=re.MULTILINE)


def test_the_file_of_settings_has_all_defaults(tmp_path: Path) -> None:
    """
    As it is printed it sets nothing; with each line uncommented it sets what holds without it, apart from two files
    that have no default.
    """
    file = tmp_path / "gateway.toml"
    file.write_text(as_toml())
    assert tomllib.loads(as_toml()) == {}
    assert read_settings(["--config", str(file)], {}) == replace(Settings(), config=str(file))
    file.write_text(uncommented(as_toml()))
    assert tomllib.loads(uncommented(as_toml())).keys() == OPTIONS.keys() - {"config"}
    defaults = replace(Settings(), config=str(file), port_file="FILE", seaweed_security="FILE")
    assert repr(read_settings(["--config", str(file)], {})) == repr(defaults)


@pytest.mark.parametrize("change", [str, uncommented], ids=["unchanged", "uncommented"])
def test_a_gateway_starts_from_the_file_of_settings(tmp_path: Path, change: Callable[[str], str]) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text(change(as_toml()))
    with Kafka("--config", str(file)) as kafka:
        assert (kafka.folder / "kgateway-data").is_dir()


@ROWS
def test_each_setting_is_explained_in_the_file_of_settings(row: Option) -> None:
    """
    What it is, what is allowed and Kafka's name stand above it, in lines of at most 100 columns.
    """
    if row.name == "config":
        return
    [above] = [block for block in as_toml().split("\n\n") if f"\n#{row.name} = " in block]
    assert max(map(len, as_toml().splitlines())) <= 100
    words = " ".join(line.removeprefix("# ") for line in above.splitlines()[:-1])
    assert row.meaning[1:] in words
    assert f"Allowed: {row.allowed}." in words
    assert not row.kafka or f"Kafka: {row.kafka}." in words
