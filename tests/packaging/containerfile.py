"""
Reads packaging/Containerfile.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PATH = ROOT / "packaging" / "Containerfile"


class Instruction(NamedTuple):
    name: str
    arguments: str
    stage: int  # 0 before the first FROM


def instructions() -> list[Instruction]:
    """
    All instructions, continued lines joined.
    """
    return list(_instructions(PATH.read_text()))


def _instructions(text: str) -> Iterator[Instruction]:
    stage = 0
    for line in re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", "").splitlines():
        if line:
            name, _, arguments = line.partition(" ")
            stage += name == "FROM"
            yield Instruction(name, " ".join(arguments.split()), stage)


def only(name: str, stage: int) -> str:
    """
    The arguments of the one instruction of this name in a stage.
    """
    [arguments] = [row.arguments for row in instructions() if (row.name, row.stage) == (name, stage)]
    return arguments


def copied() -> dict[str, str]:
    """
    Where the build copies files of the checkout to, for each of them.
    """
    found: dict[str, str] = {}
    for row in instructions():
        if row.name == "COPY" and not row.arguments.startswith("--from="):
            *sources, target = row.arguments.split()
            found |= {source: f"{target}{source}" if target.endswith("/") else target for source in sources}
    return found


def command(name: str) -> list[str]:
    """
    The command of ENTRYPOINT or HEALTHCHECK, which both are JSON, so that no shell stands between.
    """
    words: list[str] = json.loads(re.sub(r"^.*?\[", "[", only(name, 2)))
    return words


def environment() -> dict[str, str]:
    """
    The variables of the image, except its PATH.
    """
    return dict(pair.split("=", 1) for pair in only("ENV", 2).split() if not pair.startswith("PATH="))
