"""
The Pythons that setup.cfg names, and where they are.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path

from tests.packaging.containerfile import ROOT


def named() -> list[str]:
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg")
    return re.findall(r"Python :: (3\.\d+)$", setup["metadata"]["classifiers"], re.MULTILINE)


def required() -> list[str]:
    """
    Those of which none may be missing: PYTHONS lists them, with commas between.
    """
    return [version.strip() for version in os.environ.get("PYTHONS", "").split(",") if version.strip()]


def found(version: str) -> str | None:
    """
    A Python of this version. A file of its name may be there and not start one: pyenv has such.
    """
    ask = "import sys; print('{}.{}'.format(*sys.version_info))"
    for name in _candidates(version):
        asked = subprocess.run([name, "-c", ask], capture_output=True, text=True, check=False)
        if asked.stdout.strip() == version:
            return name
    return None


def _candidates(version: str) -> Iterator[str]:
    yield sys.executable
    for folder in os.get_exec_path():
        if name := shutil.which(f"python{version}", path=folder):
            yield name
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from map(str, sorted(pyenv.glob(f"versions/{version}.*/bin/python")))


def told(places: dict[str, str | None]) -> list[str]:
    """
    The lines of a summary.
    """
    tried = [f"{version} ({place})" for version, place in places.items() if place]
    missing = [version for version, place in places.items() if place is None]
    return [f"tried with Python {', '.join(tried) or 'none'}", *([f"missing: {', '.join(missing)}"] if missing else [])]
