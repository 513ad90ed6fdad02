"""
Processed and committed offsets, and whether they fit: see `group_check`.
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence

from tests.clients.groups.events import Committed, Event, Place, Processed, Seen

_LATELY = 6  # commits named in a fault


class Offsets:
    """
    The processed and the committed offsets.
    """

    def __init__(self) -> None:
        self._processed: defaultdict[Place, set[int]] = defaultdict(set)  # processed offsets beyond the following
        self._following: defaultdict[Place, int] = defaultdict(int)  # everything before it is processed
        self._accepted: defaultdict[Place, list[tuple[float, int]]] = defaultdict(list)  # time, furthest offset
        self._seen: dict[Place, int] = {}
        self._lately: defaultdict[Place, deque[str]] = defaultdict(lambda: deque(maxlen=_LATELY))

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
                        self._lately[place].append(
                            f"{offset} by {event.member} from {event.since:.3f} to {event.at:.3f}"
                        )
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
                yield (
                    f"{place}: the committed offset went back from {before} to {offset} at {event.at:.3f}, after "
                    f"commits of {', '.join(self._lately[place]) or 'nobody'}"
                )
            if offset > self._following[place]:
                yield f"{place}: {offset} is committed at {event.at:.3f}, {self._following[place]} is not processed"
            promised = self._promised(place, event.since)
            if offset < promised:
                yield f"{place}: {offset} is committed at {event.at:.3f}, and {promised} was accepted before"
            self._seen[place] = offset

    def _promised(self, place: Place, before: float) -> int:
        """
        The furthest offset accepted before that time.
        """
        accepted = self._accepted[place]
        while len(accepted) > 1 and accepted[1][0] <= before:  # times never decrease
            del accepted[0]
        return accepted[0][1] if accepted and accepted[0][0] <= before else -1
