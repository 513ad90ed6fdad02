"""
What must be true of a group, whatever happens to its members, checked from its events alone.

The check is pure: it takes events, and returns their faults in words. It demands

    owners      one of each partition at a time. Only a member that the group has shut out may believe for a while that
                it still has one, or has got one: it was frozen, or it finds out by a refusal or as a loss
    commits     none of a member that another one has replaced; none beyond what was processed; what was accepted stays,
                and offsets never go back
    processing  every record, at least once
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kgateway.wire.errors import ErrorCode
from tests.clients.groups.events import (
    Assigned,
    Committed,
    Ended,
    Event,
    Frozen,
    Left,
    Lost,
    OfMember,
    Place,
    Refused,
    Revoked,
    Thawed,
)
from tests.clients.groups.offsets import Offsets

SHUT_OUT = {
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.STALE_MEMBER_EPOCH,
}


def faults(events: Sequence[Event], ends: Mapping[Place, int], out_of_date_s: float) -> list[str]:
    """
    All faults of events in partitions with these ends; a running member finds out within this many seconds that it was
    fenced.
    """
    ordered = sorted(events, key=lambda event: event.at)
    return [*_Owners(out_of_date_s).faults(ordered), *Offsets().faults(ordered, ends)]


@dataclass(frozen=True)
class _Doubt:
    """
    Two members believe that they own a partition.
    """

    place: Place
    former: str
    later: str
    at: float  # when the doubt began

    @property
    def between(self) -> tuple[str, str]:
        return self.former, self.later

    def __str__(self) -> str:
        return f"{self.place}: {self.later} has it since {self.at:.6f}, and {self.former}"


class _Owners:
    """
    The owners of each partition, according to the members.
    """

    def __init__(self, out_of_date_s: float) -> None:
        self._out_of_date_s = out_of_date_s
        self._owned: defaultdict[Place, set[str]] = defaultdict(set)
        self._frozen: set[str] = set()
        self._thawed: dict[str, float] = {}  # when a member was thawed, and can find out
        self._excused: dict[str, float] = {}  # when a member learned that it is fenced
        self._doubts: list[_Doubt] = []
        self._accused: dict[
            _Doubt, str
        ] = {}  # doubts in which only the later owner can have been fenced, with the fault to report otherwise

    def faults(self, events: Sequence[Event]) -> Iterator[str]:
        """
        Partitions with two owners, and commits of members that do not own the partition.
        """
        for event in events:
            match event:
                case Assigned():
                    self._excused.pop(event.member, None)
                    for place in event.places:
                        self._assign(place, event.member, event.at)
                case Revoked():
                    yield from self._let_go(event, event.places)
                case Lost():
                    self._excused[event.member] = event.at
                    yield from self._let_go(event, event.places)
                case Refused() if event.code in SHUT_OUT:
                    self._excused.setdefault(event.member, event.at)
                case Frozen() | Thawed():
                    self._freeze(event)
                case Left() | Ended():
                    places = [place for place, owners in self._owned.items() if event.member in owners]
                    yield from self._let_go(event, places)
                    self._frozen.discard(event.member)
                case Committed():
                    yield from self._stale(event)
        yield from (f"{doubt} still has it" for doubt in self._doubts if doubt.former not in self._frozen)
        yield from (said for doubt, said in self._accused.items() if doubt.later not in self._frozen)

    def _freeze(self, event: Frozen | Thawed) -> None:
        if isinstance(event, Frozen):
            self._frozen.add(event.member)
        else:
            self._frozen.discard(event.member)
            self._thawed[event.member] = event.at

    def _assign(self, place: Place, member: str, at: float) -> None:
        owners = self._owned[place]
        self._doubts += [_Doubt(place, former, member, at) for former in sorted(owners) if former != member]
        owners.add(member)

    def _let_go(self, event: OfMember, places: Sequence[Place]) -> Iterator[str]:
        gone = set(places)
        for place in gone:
            self._owned[place].discard(event.member)
        for doubt in [doubt for doubt in self._accused if doubt.place in gone and doubt.later == event.member]:
            said = self._accused.pop(doubt)
            if not self._was_told_late(doubt, event):
                yield said
        settled = [
            doubt for doubt in self._doubts if doubt.place in gone and event.member in (doubt.former, doubt.later)
        ]
        self._doubts = [doubt for doubt in self._doubts if doubt not in settled]
        for doubt in settled:
            if not self._may_not_know(doubt, event):
                yield from self._suspect(doubt, event)

    def _suspect(self, doubt: _Doubt, event: OfMember) -> Iterator[str]:
        """
        The former owner was not fenced; but the later one may be, which shows when it gives the partition up.
        """
        what = f"{type(event).__name__} of {event.member}"
        said = f"{doubt} had it until {event.at:.6f} ({what}) without being shut out"
        if event.member == doubt.former:
            self._accused[doubt] = said
        elif not self._was_told_late(doubt, event):
            yield said

    def _may_not_know(self, doubt: _Doubt, event: OfMember) -> bool:
        """
        Whether the former owner could believe that it owned the partition until now, though another member got it.
        """
        # A member that was just thawed may be assigned something by a response as old as its sleep.
        since = max(self._excused.get(doubt.former, 0), self._thawed.get(doubt.former, 0))
        if doubt.former in self._frozen or event.at - since <= self._out_of_date_s:
            return True
        return event.member == doubt.former and self._was_killed_soon(doubt, event)

    def _was_told_late(self, doubt: _Doubt, event: OfMember) -> bool:
        """
        Whether the later owner believed a response as old as its sleep, and has just found out.
        """
        if event.at - self._thawed.get(doubt.later, 0) > self._out_of_date_s:
            return False
        return isinstance(event, Lost) or self._was_killed_soon(doubt, event)

    def _was_killed_soon(self, doubt: _Doubt, event: OfMember) -> bool:
        """
        Whether it was killed before it could find out.
        """
        return isinstance(event, Ended) and event.at - doubt.at <= self._out_of_date_s

    def _stale(self, event: Committed) -> Iterator[str]:
        for doubt in self._doubts:
            if doubt.former == event.member and doubt.place in event.offsets and doubt.at < event.since:
                yield (
                    f"{doubt.place}: the commit of {event.offsets[doubt.place]} by {doubt.former}, begun at "
                    f"{event.since:.3f}, was accepted, where {doubt.later} has the partition since {doubt.at:.3f}"
                )
