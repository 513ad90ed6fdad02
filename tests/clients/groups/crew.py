"""
The members of one group, of any kind.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from threading import Condition
from time import monotonic
from types import TracebackType
from typing import Any, Self

from tests.clients.client import PATIENCE_S
from tests.clients.groups.events import Place
from tests.clients.groups.kinds import Kind
from tests.clients.groups.member import Member, Tell
from tests.clients.groups.members.reports import Wanted

_LOOK_EVERY_S = 0.2  # if no member has news


class Crew:
    """
    All members ever started; they are killed on exit.
    """

    def __init__(self, how: Wanted, tell: Tell | None = None) -> None:
        self.members: list[Member] = []
        self._how = how
        self._tell = tell
        self._news = Condition()
        self._running = ExitStack()

    def start(self, kind: Kind, **differently: Any) -> Member:
        how = replace(self._how, **differently)
        name = f"{len(self.members)}-{kind}-{how.protocol}"
        member = self._running.enter_context(Member(name, kind, how, self._news, self._tell))
        self.members.append(member)
        return member

    @property
    def living(self) -> list[Member]:
        """
        The members whose process runs and was not asked to leave.
        """
        return [member for member in self.members if not member.is_leaving and not member.has_ended]

    @property
    def committed(self) -> Mapping[Place, int]:
        """
        The furthest offsets that any member has committed.
        """
        found: dict[Place, int] = {}
        for member in self.members:
            for place, offset in dict(member.committed).items():
                found[place] = max(offset, found.get(place, 0))
        return found

    def shares(self, places: Mapping[Place, int] | set[Place]) -> bool:
        """
        Whether each of these partitions has one owner among the living members, not counting frozen ones.
        """
        awake = [member for member in self.living if not member.is_frozen]
        owned = Counter(place for member in awake for place in set(member.owned))
        return owned == Counter(set(places))

    def wait(self, holds: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
        """
        Wait until a condition on the members' events, or on the server's response, holds.
        """
        deadline = monotonic() + patience_s
        with self._news:
            while not holds():
                left_s = deadline - monotonic()
                assert left_s > 0, f"not {what}:\n" + "\n".join(member.report() for member in self.members[-30:])
                self._news.wait(min(left_s, _LOOK_EVERY_S))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._running.close()
