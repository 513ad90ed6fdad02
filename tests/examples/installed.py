"""
The example as users have it: built, installed into a fresh environment beside kgateway, and removed again.

These tests are not among the default ones, because pip downloads the requirements: `tox -e plugin` runs them.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgateway import __version__
from kgateway.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kgateway.testing.kafka import Kafka
from kgateway.wire.errors import ErrorCode
from tests.examples.acme import LISTENERS, PUBLIC, Acme
from tests.examples.client import Client
from tests.packaging.environment import Environment

ROOT = Path(__file__).parents[2]
PACKAGES = ("kgateway", "twisted")
FILES = ("setup.cfg", "pyproject.toml", "README.md", "LICENSE")
LEFT_BY_OTHERS = shutil.ignore_patterns("__pycache__", "dropin.cache", "*.egg-info", "build")


@pytest.fixture(scope="session")
def sources(examples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """
    Copies of both sources, because builds leave files in them.
    """
    folder = tmp_path_factory.mktemp("sources")
    for name in PACKAGES:
        shutil.copytree(ROOT / name, folder / "kgateway" / name, ignore=LEFT_BY_OTHERS)
    for name in FILES:
        shutil.copy(ROOT / name, folder / "kgateway" / name)
    shutil.copytree(examples / "acme-kgateway", folder / "acme-kgateway", ignore=LEFT_BY_OTHERS)
    return folder


@pytest.fixture(scope="session")
def environment(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """
    A fresh environment with kgateway as a wheel.
    """
    environment = Environment(tmp_path_factory.mktemp("environment"))
    environment.pip(
        "wheel", "--no-deps", "--wheel-dir", sources / "dist", sources / "kgateway", sources / "acme-kgateway"
    )
    environment.pip("install", *(sources / "dist").glob("kgateway-*.whl"))
    return environment


@pytest.fixture(scope="class")
def acme(environment: Environment, sources: Path) -> Iterator[Kafka]:
    """
    A gateway with the example installed.
    """
    environment.pip("install", *(sources / "dist").glob("acme_kgateway-*.whl"))
    with environment.kafka(*LISTENERS) as kafka:
        yield kafka
    environment.pip("uninstall", "--yes", "acme-kgateway")


class TestInstalled(Acme):
    """
    Installing acme-kgateway activates it.
    """

    def test_plugins_are_listed_with_their_distribution(self, acme: Kafka, environment: Environment) -> None:
        """
        Each handler has its distribution and priority, the built-in ones too; the filter has the handlers around which
        it is put.
        """
        rows = environment.plugins(acme)
        assert [(row["versions"], row["from"], row["priority"]) for row in rows if row["key"] in (20, 20_000)] == [
            ("1-4", "acme-kgateway 1.0", 10),
            ("5-6", f"kgateway {__version__}", 0),
            ("0-1", "acme-kgateway 1.0", 0),
        ]
        [[around]] = [row["filters"] for row in rows if row["filters"]]
        seal = ("acme_kgateway.audit.seal_audit", "acme-kgateway 1.0", 5)
        assert (around["filter"], around["from"], around["priority"]) == seal

    def test_the_list_matches_the_page(self, acme: Kafka, environment: Environment) -> None:
        """
        The list has what docs/plugins.md shows of `kgateway plugins`, except for the width of columns.
        """
        shown = (ROOT / "docs" / "plugins.md").read_text().partition("$ kgateway plugins\n")[2].partition("```")[0]
        said = environment.run("-m", "kgateway", "plugins", "--control-socket", acme.control_socket)
        lines = [line.split() for line in said.splitlines()]
        assert [line for line in shown.splitlines() if line != "..." and line.split() not in lines] == []


def test_a_removed_plugin_is_gone(environment: Environment) -> None:
    """
    After a restart the gateway has only its own handlers and no filter, and old clients can delete topics.
    """
    with environment.kafka() as kafka, Client(kafka.addresses[PUBLIC]) as client:
        rows = environment.plugins(kafka)
        assert {row["from"] for row in rows} == {f"kgateway {__version__}"}
        assert [row for row in rows if row["filters"]] == []
        client.create("audit-old.topic")
        request = DeleteTopicsRequest(topic_names=["audit-old.topic"], timeout_ms=10_000)
        [answer] = client.ask(request, DeleteTopicsResponse, 4).responses
        assert answer.error_code == ErrorCode.NONE


def test_an_editable_install_is_active(environment: Environment, sources: Path) -> None:
    """
    A plugin in an editable install is found at the next start, with its module.
    """
    environment.pip("install", "--no-deps", "--editable", sources / "acme-kgateway")
    with environment.kafka() as kafka:
        [count] = [row for row in environment.plugins(kafka) if row["key"] == 20_000]
    assert count["from"] == "twisted.plugins.acme_kgateway"
    environment.pip("uninstall", "--yes", "acme-kgateway")
