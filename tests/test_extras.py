"""
How an extra that is missing is installed.
"""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from kgateway.extras import install_command, not_installed


def test_an_installed_distribution_is_named(tmp_path: Path) -> None:
    """
    The name is quoted, because some shells take brackets for patterns.
    """
    command = install_command("spark", tmp_path)
    assert shlex.split(command) == ["pip", "install", "kgateway[spark]"]
    assert "'kgateway[spark]'" in command


def test_a_checkout_is_installed_from_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The command works from any folder.
    """
    (tmp_path / "setup.cfg").touch()
    assert shlex.split(install_command("spark", tmp_path)) == ["pip", "install", "-e", f"{tmp_path}[spark]"]
    monkeypatch.chdir(tmp_path)
    assert install_command("spark", tmp_path) == "pip install -e '.[spark]'"


def test_a_library_of_no_extra_has_no_advice() -> None:
    assert not_installed(ImportError(name="kgateway_typo")) is None


@pytest.mark.parametrize(
    ("options", "beginning"),
    [
        (["serve", "--broker", "seaweedmq:localhost:9333"], "kgateway serve: --broker is 'seaweedmq:localhost:9333'"),
        (["seaweedmq", "stats", "--master", "localhost:9333"], "kgateway seaweedmq stats"),
    ],
    ids=lambda value: value[0],
)
def test_every_command_gives_the_same_advice(options: list[str], beginning: str) -> None:
    """
    It names the extra that brings the missing library.
    """
    script = f"import sys; sys.modules['h2'] = None; from kgateway.cli.main import main; main({options})"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    advice = (
        f"the extra `seaweedmq` is not installed (there is no h2): install it with `{install_command('seaweedmq')}`"
    )
    assert f"{beginning}: {advice}\n" in run.stdout + run.stderr
