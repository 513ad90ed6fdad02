"""
The wheel as users install it: in a fresh environment of each Python that setup.cfg names and that is on the PATH.

These tests are not among the default ones, because pip downloads the requirements: `tox -e release` runs them.
"""

import os
import re
import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

from kgateway import __version__
from tests.packaging.environment import Environment

ROOT = Path(__file__).parents[2]
OWN_HANDLER = """
from kgateway.api import Context, around
from kgateway.interfaces import Proceed
from kgateway.messages.produce import ProduceRequest
from kgateway.wire.schema import Message


@around(ProduceRequest)
async def passed_on(request: ProduceRequest, context: Context, proceed: Proceed) -> Message | None:
    return await proceed(request)
"""


def _pythons() -> list[str]:
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg")
    return re.findall(r"Python :: (3\.\d+)$", setup["metadata"]["classifiers"], re.MULTILINE)


def _found(version: str) -> str | None:
    """
    A Python of this version. A file of its name may be there and not start one: pyenv has such.
    """
    names = [sys.executable, shutil.which(f"python{version}")]
    ask = "import sys; print('{}.{}'.format(*sys.version_info))"
    for name in filter(None, names):
        asked = subprocess.run([name, "-c", ask], capture_output=True, text=True, check=False)
        if asked.stdout.strip() == version:
            return name
    return None


@pytest.fixture(scope="module", params=_pythons())
def environment(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    python = _found(request.param)
    if python is None:
        pytest.skip(f"no python{request.param} on the PATH")
    [wheel] = Path(os.environ["RELEASE_FILES"]).glob("*.whl")
    environment = Environment(tmp_path_factory.mktemp("environment"), python)
    environment.pip("install", "--quiet", wheel)
    return environment


def test_one_python_is_there() -> None:
    """
    Each test below would be skipped otherwise.
    """
    assert any(map(_found, _pythons()))


def test_the_command_is_installed(environment: Environment) -> None:
    """
    `kgateway --version` prints the version of the wheel.
    """
    command = environment.python.with_name("kgateway")
    assert subprocess.check_output([command, "--version"], text=True) == f"kgateway {__version__}\n"


def test_only_our_own_names_are_installed(environment: Environment) -> None:
    """
    The wheel brings its two packages, its plugin and its metadata, so that a user's own `handlers` never collides with
    ours.
    """
    script = "from importlib.metadata import files; print(*files('kgateway'), sep='\\n')"
    files = [file for file in environment.run("-c", script).split() if file.endswith(".py") or "/" not in file]
    assert {file for file in files if not file.startswith(("kgateway/", "pyspark_kgateway/"))} == {
        "twisted/plugins/kgateway_plugin.py"
    }
    assert "kgateway/handlers/produce.py" in files


def test_records_come_back(environment: Environment) -> None:
    """
    A gateway starts, and `kgateway consume` prints what `kgateway produce` has sent.
    """
    with environment.kafka() as kafka:
        cluster = ("--bootstrap", kafka.bootstrap)
        environment.run("-m", "kgateway", "produce", "greetings", "--create", *cluster, stdin="hello\n")
        assert environment.run("-m", "kgateway", "consume", "greetings", *cluster) == "hello\n"


def test_a_project_may_have_handlers(environment: Environment, tmp_path: Path) -> None:
    """
    A package `handlers` where the gateway is started is the project's own, and may be loaded as plugins.
    """
    package = tmp_path / "handlers"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "own.py").write_text(OWN_HANDLER)
    with environment.kafka("--handlers", "handlers", folder=tmp_path) as kafka:
        [produce] = [row for row in environment.plugins(kafka) if row["filters"]]
    assert produce["api"] == "Produce"
    assert [row["filter"] for row in produce["filters"]] == ["handlers.own.passed_on"]
