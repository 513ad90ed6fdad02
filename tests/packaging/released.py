"""
The wheel as users install it: in a fresh environment of each Python that setup.cfg names and that is there. The sdist
as packagers unpack it.

These tests are not among the default ones, because pip downloads the requirements: `tox -e release` runs them.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kgateway import __version__
from tests.packaging.containerfile import ROOT
from tests.packaging.environment import Environment
from tests.packaging.pythons import found, named, required

OF_THE_CHECKOUT = [
    "tests/docs/test_links.py",
    *(f"tests/test_{name}.py" for name in ("ci_plan", "docs", "issue_forms", "layers", "names")),
]
OWN_HANDLER = """
from kgateway.api import Context, around
from kgateway.interfaces import Proceed
from kgateway.messages.produce import ProduceRequest
from kgateway.wire.schema import Message


@around(ProduceRequest)
async def passed_on(request: ProduceRequest, context: Context, proceed: Proceed) -> Message | None:
    return await proceed(request)
"""


@pytest.fixture(scope="module", params=named())
def environment(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, places: dict[str, str | None]
) -> Environment:
    python = places[request.param] = found(request.param)
    if python is None:
        missing = f"there is no python{request.param}"
        if request.param in required():
            pytest.fail(f"{missing}, but PYTHONS requires it")
        pytest.skip(missing)
    environment = Environment(tmp_path_factory.mktemp("environment"), python)
    environment.pip("install", "--quiet", _released("*.whl"))
    return environment


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """
    The folder in the sdist.
    """
    folder = tmp_path_factory.mktemp("sdist")
    subprocess.run(["tar", "--extract", "--file", _released("*.tar.gz"), "--directory", folder], check=True)
    [unpacked] = folder.iterdir()
    return unpacked


def _released(pattern: str) -> Path:
    [path] = Path(os.environ["RELEASE_FILES"]).glob(pattern)
    return path


def test_one_python_is_there() -> None:
    """
    Each test of the wheel would be skipped otherwise.
    """
    assert any(map(found, named()))


def test_required_pythons_are_named() -> None:
    """
    PYTHONS requires none that is not tried.
    """
    assert set(required()) <= set(named())


def test_the_sdist_has_every_file(sdist: Path) -> None:
    """
    It has what a checkout has.
    """
    if not (ROOT / ".git").exists():
        pytest.skip("this is not a checkout")
    listed = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines()
    assert [path for path in listed if not (sdist / path).exists()] == []


@pytest.mark.parametrize("tests", [["tests/packaging", *OF_THE_CHECKOUT], ["tests/packaging/image.py"]])
def test_tests_pass_in_the_sdist(tests: list[str], sdist: Path) -> None:
    """
    Those of the files beside the packages; and the image is built.
    """
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
        cwd=sdist,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_the_command_is_installed(environment: Environment) -> None:
    """
    `kgateway --version` prints the version of the wheel, which is pure.
    """
    command = environment.python.with_name("kgateway")
    assert subprocess.check_output([command, "--version"], text=True) == f"kgateway {__version__} (pure Python)\n"


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
