"""
What a backfill remembers of itself, in a small file: what it was begun with. How far it has come is in the topic.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

from kgateway.spark.backfill.files import File
from kgateway.spark.failures import Unreadable, WrongOption

_VERSION = 1


@dataclass(frozen=True, slots=True)
class State:
    """
    A backfill: its topic, where it began in each partition and how many rows go there, as whom it sends, its files,
    what was said of them, and, when it is over, where the live records begin.
    """

    topic: str
    topic_id: str
    starts: Mapping[int, int]
    rows: Mapping[int, int]
    producer_id: int
    epoch: int
    files: Sequence[File]
    said: Mapping[str, Any]
    handed_over: Mapping[int, int] | None = None

    def ended(self, at: Mapping[int, int]) -> Self:
        """
        The same when it is over.
        """
        return replace(self, handed_over=dict(at))

    def check(self, topic: str, topic_id: str, partitions: int, files: Sequence[File], said: Mapping[str, Any]) -> None:
        """
        Refuse to go on with anything else than what it was begun with.
        """
        if topic != self.topic:
            raise WrongOption(f"it is of a backfill of {self.topic}, and not of {topic}")
        if topic_id != self.topic_id:
            raise WrongOption(f"the topic {topic} was made anew since")
        if partitions != len(self.starts):
            raise WrongOption(f"{topic} had {len(self.starts)} partitions, and has {partitions} now: keys have moved")
        for name in sorted(said.keys() | self.said.keys()):
            if said.get(name) != self.said.get(name):
                raise WrongOption(f"--{name} was {_shown(self.said.get(name))}, and is {_shown(said.get(name))} now")
        before = {file.path: file for file in self.files}
        now = {file.path: file for file in files}
        for path in sorted(before.keys() | now.keys()):
            if before.get(path) != now.get(path):
                how = "is new" if path not in before else "is gone" if path not in now else "has changed since"
                raise WrongOption(f"the file {path} {how}")


def _shown(value: Any) -> str:
    if value is None or value == []:
        return "not given"
    return ",".join(value) if isinstance(value, list) else str(value)


def load(path: Path) -> State | None:
    """
    What is remembered there; nothing where there is no file.
    """
    try:
        told = json.loads(path.read_text())
        if told.pop("version") != _VERSION:
            raise ValueError
        numbers = {name: _numbered(told.pop(name)) for name in ("starts", "rows", "handed_over")}
        files = [File(*one) for one in told.pop("files")]
        return State(**told, **numbers, files=files)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unreadable(f"{path} is no state of a backfill: name another file by --state") from error


def _numbered(told: Mapping[str, int] | None) -> Any:
    return None if told is None else {int(index): number for index, number in told.items()}


def save(path: Path, state: State) -> None:
    """
    Write it, whole or not at all.
    """
    new = path.with_name(f"{path.name}.new")
    with new.open("w") as file:
        json.dump({"version": _VERSION, **asdict(state)}, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
