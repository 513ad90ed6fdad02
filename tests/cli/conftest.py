"""
A data folder for `kgateway log`.
"""

import shutil
from pathlib import Path

import pytest

from kgateway.cli.main import main
from tests.cli.log_folder import Ended, Run, make


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """
    A folder made once for all tests.
    """
    data = tmp_path_factory.mktemp("original") / "data"
    make(data)
    return data


@pytest.fixture
def data(original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """
    A copy of the folder in the current folder.
    """
    shutil.copytree(original, tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    return Path("data")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def called(*arguments: object) -> Ended:
        code: object = 0
        try:
            main(["log", *map(str, arguments)])
        except SystemExit as end:
            code = end.code
        told = capsys.readouterr()
        return Ended(code, told.out.splitlines(), told.err)

    return called
