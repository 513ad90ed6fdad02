"""
A member of a group: a process, whose client is one of those in `kinds`.
"""

import json
import signal
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from threading import Condition, Thread
from time import time
from types import TracebackType
from typing import Any, Self

from tests.clients.client import PATIENCE_S
from tests.clients.groups.events import (
    Assigned,
    Committed,
    Ended,
    Event,
    Failed,
    Frozen,
    Left,
    Lost,
    Place,
    Processed,
    Refused,
    Revoked,
    Thawed,
)
from tests.clients.groups.kinds import Kind
from tests.clients.groups.members.reports import Wanted

_ROOT = Path(__file__).parents[3]

Tell = Callable[[Event], None]


class Member:
    """
    A process of a member, running from its creation. Each report of the member sets `news`.
    """

    def __init__(self, name: str, kind: Kind, how: Wanted, news: Condition, tell: Tell | None = None) -> None:
        self.name = name
        self.kind = kind
        self.how = how
        self.owned: set[Place] = set()
        self.processed: dict[Place, list[int]] = {}
        self.committed: dict[Place, int] = {}
        self.refusals: list[Refused] = []
        self.failures: list[str] = []
        self.rebalances = 0
        self.committed_after = 0  # their number, as last reported
        self.is_at_work = False  # it has processed something that it is still to commit
        self.has_ended = self.is_leaving = self.is_frozen = self.was_killed = False
        self._tell = tell or (lambda event: None)
        self._news = news
        self._errors = b""
        self._process = subprocess.Popen(
            [*kind.command, json.dumps(asdict(how))],
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._readers = [Thread(target=self._read, daemon=True), Thread(target=self._read_errors, daemon=True)]
        for reader in self._readers:
            reader.start()

    def __repr__(self) -> str:
        return self.name

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.kill()

    def report(self) -> str:
        """
        Add an event.
        """
        errors = self._errors.decode(errors="replace")[-600:]
        return (
            f"{self.name} owns {sorted(self.owned)}, has committed {self.committed}, refused {self.refusals[-3:]}, "
            f"failures {self.failures[-3:]}, ended {self.has_ended}, and says\n{errors}"
        )

    def ask_to_leave(self) -> None:
        """
        Ask the member to leave in good order, without waiting.
        """
        self.is_leaving = True
        assert self._process.stdin
        try:
            self._process.stdin.write(b"leave\n")
            self._process.stdin.close()
        except OSError:  # it has ended
            pass

    def leave(self) -> None:
        """
        Ask the member to leave in good order, and wait until it has.
        """
        self.ask_to_leave()
        assert self._process.wait(PATIENCE_S) == 0, f"{self}: {self.report()}"

    def kill(self) -> None:
        self.is_leaving = self.was_killed = True
        self._process.kill()
        self._process.wait()
        for reader in self._readers:
            reader.join()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream:
                stream.close()

    def freeze(self) -> None:
        self.is_frozen = True
        self._process.send_signal(signal.SIGSTOP)
        self._tell(Frozen(time(), self.name))

    def thaw(self) -> None:
        self.is_frozen = False
        self._tell(Thawed(time(), self.name))
        self._process.send_signal(signal.SIGCONT)

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            if line.endswith(b"\n"):  # or it was killed in the middle of the line
                event = self._event(json.loads(line))
                with self._news:
                    self._take(event)
                    self._news.notify_all()
                self._tell(event)
        self._process.wait()
        with self._news:
            self.has_ended = True
            self.owned.clear()
            self._news.notify_all()
        self._tell(Ended(time(), self.name))

    def _read_errors(self) -> None:
        assert self._process.stderr
        for line in self._process.stderr:
            self._errors += line

    def _event(self, line: Mapping[str, Any]) -> Event:
        at, member = line["at"], self.name
        match line["told"]:
            case "assigned":
                return Assigned(at, member, line["partitions"])
            case "revoked":
                return Revoked(at, member, line["partitions"])
            case "lost":
                return Lost(at, member, line["partitions"])
            case "processed":
                return Processed(at, member, line["offsets"])
            case "committed":
                return Committed(at, member, line["since"], line["offsets"])
            case "refused":
                return Refused(at, member, line["code"], line["why"])
            case "failed":
                return Failed(at, member, line["why"])
            case "leaving" | "left":
                return Left(at, member)
            case other:
                raise ValueError(other)

    def _take(self, event: Event) -> None:
        match event:
            case Assigned():
                self.owned.update(event.places)
                self.rebalances += bool(event.places)  # cooperative members also report empty assignments
            case Revoked() | Lost():
                self.owned.difference_update(event.places)
            case Processed():
                self.is_at_work = True
                for place, offsets in event.offsets.items():
                    self.processed.setdefault(place, []).extend(offsets)
            case Committed():
                self.is_at_work = False
                self.committed.update(event.offsets)
                self.committed_after = self.rebalances
            case Refused():
                self.is_at_work = False
                self.refusals.append(event)
            case Failed():
                self.failures.append(event.why)
            case Left():
                self.owned.clear()
