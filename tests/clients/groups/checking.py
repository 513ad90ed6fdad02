"""
What must be true of a group, whatever befalls its members: found from the line of events alone.

Pure: it is given events, and says what is wrong with them, in words. It demands

    owners      one of each partition at a time. Only a member that the group has shut out may believe for a while that
                it still has one: it was frozen, or it finds out by a refusal or as a loss
    commits     none of a member that another one has replaced; none beyond what was processed; what was accepted stays,
                and offsets never go back
    processing  every record, at least once
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

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
    Processed,
    Refused,
    Revoked,
    Seen,
    Thawed,
)

SHUT_OUT = {
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.STALE_MEMBER_EPOCH,
}


def faults(events: Sequence[Event], ends: Mapping[Place, int], out_of_date_s: float) -> list[str]:
    """
    All that is wrong, where partitions have these ends, and a member that runs finds out in so many seconds that it was
    shut out.
    """
    ordered = sorted(events, key=lambda event: event.at)
    return [*_Owners(out_of_date_s).faults(ordered), *_Offsets().faults(ordered, ends)]


class _Owners:
    """
    Who has what, by what members tell.
    """

    def __init__(self, out_of_date_s: float) -> None:
        self._out_of_date_s = out_of_date_s
        self._owned: defaultdict[Place, dict[str, float]] = defaultdict(dict)  # since when, by member
        self._frozen: set[str] = set()
        self._thawed: dict[str, float] = {}  # since when a member can find out
        self._excused: dict[str, float] = {}  # since when it knows that it is shut out
        self._doubts: list[tuple[Place, str, str, float]] = []  # who had it, who has it, since when

    def faults(self, events: Sequence[Event]) -> Iterator[str]:
        """
        Partitions with two owners, and commits of one who is not.
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
        yield from (
            f"{place}: {later} has it since {at:.3f}, and {former} still has it"
            for place, former, later, at in self._doubts
            if former not in self._frozen
        )

    def _freeze(self, event: Frozen | Thawed) -> None:
        if isinstance(event, Frozen):
            self._frozen.add(event.member)
        else:
            self._frozen.discard(event.member)
            self._thawed[event.member] = event.at

    def _assign(self, place: Place, member: str, at: float) -> None:
        owners = self._owned[place]
        self._doubts += [(place, former, member, at) for former in owners if former != member]
        owners[member] = at

    def _let_go(self, event: OfMember, places: Sequence[Place]) -> Iterator[str]:
        member, gone = event.member, set(places)
        for place in gone:
            self._owned[place].pop(member, None)
        settled = [doubt for doubt in self._doubts if doubt[0] in gone and member in doubt[1:3]]
        self._doubts = [doubt for doubt in self._doubts if doubt not in settled]
        for place, former, later, at in settled:
            if not self._may_not_know(former, at, event):
                yield (
                    f"{place}: {later} has it since {at:.3f}, and {former} had it until {event.at:.3f} "
                    f"without being shut out"
                )

    def _may_not_know(self, former: str, at: float, event: OfMember) -> bool:
        """
        Whether who had a partition until now could believe so, though another one got it at a time.
        """
        # Who has just gone on may also be assigned something by an answer that is as old as its sleep.
        since = max(self._excused.get(former, 0), self._thawed.get(former, 0))
        if former in self._frozen or event.at - since <= self._out_of_date_s:
            return True
        # It was killed before it could find out.
        return isinstance(event, Ended) and event.member == former and event.at - at <= self._out_of_date_s

    def _stale(self, event: Committed) -> Iterator[str]:
        for place, former, later, at in self._doubts:
            if former == event.member and place in event.offsets and at < event.since:
                yield (
                    f"{place}: the commit of {event.offsets[place]} by {former}, begun at {event.since:.3f}, was "
                    f"accepted, where {later} has the partition since {at:.3f}"
                )


class _Offsets:
    """
    What is processed, and what is committed.
    """

    def __init__(self) -> None:
        self._processed: defaultdict[Place, set[int]] = defaultdict(set)  # beyond the following
        self._following: defaultdict[Place, int] = defaultdict(int)  # all before it is processed
        self._accepted: defaultdict[Place, list[tuple[float, int]]] = defaultdict(list)  # the time, the furthest so far
        self._seen: dict[Place, int] = {}

    def faults(self, events: Sequence[Event], ends: Mapping[Place, int]) -> Iterator[str]:
        """
        Offsets that go back or ahead, and records that nobody processed.
        """
        for event in events:
            match event:
                case Processed():
                    for place, offsets in event.offsets.items():
                        self._process(place, offsets)
                case Committed():
                    for place, offset in event.offsets.items():
                        self._accept(place, event.at, offset)
                case Seen():
                    yield from self._see(event)
        for place, end in ends.items():
            following = self._following[place]
            if following < end:
                yield f"{place}: the record at offset {following} was not processed, and the log ends at {end}"

    def _process(self, place: Place, offsets: Sequence[int]) -> None:
        beyond, following = self._processed[place], self._following[place]
        beyond.update(offset for offset in offsets if offset >= following)
        while following in beyond:
            beyond.discard(following)
            following += 1
        self._following[place] = following

    def _accept(self, place: Place, at: float, offset: int) -> None:
        accepted = self._accepted[place]
        accepted.append((at, max(offset, accepted[-1][1] if accepted else 0)))

    def _see(self, event: Seen) -> Iterator[str]:
        for place in self._seen.keys() | event.offsets.keys():
            offset, before = event.offsets.get(place, -1), self._seen.get(place, -1)
            if offset < before:
                yield f"{place}: the committed offset went back from {before} to {offset} at {event.at:.3f}"
            if offset > self._following[place]:
                yield f"{place}: {offset} is committed at {event.at:.3f}, {self._following[place]} is not processed"
            promised = self._promised(place, event.since)
            if offset < promised:
                yield f"{place}: {offset} is committed at {event.at:.3f}, and {promised} was accepted before"
            self._seen[place] = offset

    def _promised(self, place: Place, before: float) -> int:
        """
        The furthest that was accepted before that time.
        """
        accepted = self._accepted[place]
        while len(accepted) > 1 and accepted[1][0] <= before:  # times only go forth
            del accepted[0]
        return accepted[0][1] if accepted and accepted[0][0] <= before else -1
