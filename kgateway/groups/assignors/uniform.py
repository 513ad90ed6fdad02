"""
The assignor `uniform`: all members read equally many partitions, and keep what they read if they can.

If all subscribe to the same topics, loads differ by one at most, and no assignment with such loads moves fewer
partitions. Otherwise free partitions go to the least loaded subscriber of their topic, and partitions move as long as a
move makes two loads more alike.
"""

from collections.abc import Mapping
from heapq import heapify, heapreplace

from kgateway.groups.assignors.assignment import NOTHING, Assignment, Subscriber
from kgateway.wire.uuids import Uuid

ROUNDS_MAX = 64  # over all topics; nearly always two are enough

Partition = tuple[Uuid, int]  # a PartitionId as a plain tuple: an assignment makes a hundred thousand of them
Owners = dict[Uuid, list[str | None]]  # of each partition, by index


def assign_uniformly(members: Mapping[str, Subscriber], partition_counts: Mapping[Uuid, int]) -> dict[str, Assignment]:
    if not members:
        return {}
    alike = next(iter(members.values())).topics
    if all(member.topics is alike or member.topics == alike for member in members.values()):
        return _among_equals(members, {topic_id: partition_counts[topic_id] for topic_id in alike})
    return _Balance(members, partition_counts).assignment()


def _keep(
    members: Mapping[str, Subscriber], partition_counts: Mapping[Uuid, int]
) -> tuple[dict[str, Assignment], Owners]:
    """
    What members may keep of what they have, each partition at one of them, and the owners by partition.
    """
    owners: Owners = {topic_id: [None] * number for topic_id, number in sorted(partition_counts.items())}
    kept: dict[str, Assignment] = {}
    for member_id in sorted(members):
        topics, current, _ = members[member_id]
        mine: dict[Uuid, frozenset[int]] = {}
        for topic_id, partitions in current.items():
            if topic_id in topics:
                taken = owners[topic_id]
                free = [index for index in partitions if index < len(taken) and taken[index] is None]
                for index in free:
                    taken[index] = member_id
                if free:
                    mine[topic_id] = partitions if len(free) == len(partitions) else frozenset(free)
        kept[member_id] = mine
    return kept, owners


def _among_equals(members: Mapping[str, Subscriber], partition_counts: Mapping[Uuid, int]) -> dict[str, Assignment]:
    """
    All subscribe to the same topics: members with too many partitions give some up, members with too few get them.
    """
    kept, owners = _keep(members, partition_counts)
    loads = {member_id: sum(map(len, mine.values())) for member_id, mine in kept.items()}
    least, extra = divmod(sum(partition_counts.values()), len(members))
    free = [
        (topic_id, index) for topic_id, taken in owners.items() for index, owner in enumerate(taken) if owner is None
    ]
    lacking: list[tuple[str, int]] = []
    # Those that have the most may have one more than others: so the fewest partitions move.
    for rank, member_id in enumerate(sorted(members, key=lambda member_id: (-loads[member_id], member_id))):
        quota = least + (rank < extra)
        if loads[member_id] > quota:
            kept[member_id], given_up = _shortened(kept[member_id], quota)
            free += given_up
        elif loads[member_id] < quota:
            lacking.append((member_id, quota - loads[member_id]))
    free.sort(reverse=True)
    for member_id, number in lacking:
        kept[member_id] = _with(kept[member_id], [free.pop() for _ in range(number)])
    return kept


def _shortened(mine: Assignment, quota: int) -> tuple[Assignment, list[Partition]]:
    ordered = sorted((topic_id, index) for topic_id, partitions in mine.items() for index in partitions)
    return _with(NOTHING, ordered[:quota]), ordered[quota:]


def _with(mine: Assignment, more: list[Partition]) -> Assignment:
    grown: dict[Uuid, set[int]] = {}
    for topic_id, index in more:
        grown.setdefault(topic_id, set()).add(index)
    return {**mine, **{topic_id: mine.get(topic_id, frozenset()) | added for topic_id, added in grown.items()}}


class _Balance:
    """
    An assignment on its way to balance, among members that subscribe to different topics.
    """

    def __init__(self, members: Mapping[str, Subscriber], partition_counts: Mapping[Uuid, int]) -> None:
        readers: dict[Uuid, list[str]] = {}
        for member_id in sorted(members):
            for topic_id in members[member_id].topics:
                readers.setdefault(topic_id, []).append(member_id)
        # Topics whose partitions fall heavily on few come first: the others can make up for it.
        self._readers = dict(
            sorted(readers.items(), key=lambda item: (-partition_counts[item[0]] / len(item[1]), len(item[1]), item[0]))
        )
        self._kept, self._owners = _keep(members, {topic_id: partition_counts[topic_id] for topic_id in readers})
        self._loads = {member_id: sum(map(len, mine.values())) for member_id, mine in self._kept.items()}
        self._changed: set[tuple[str, Uuid]] = set()

    def assignment(self) -> dict[str, Assignment]:
        for topic_id in self._readers:
            self._assign_free(topic_id)
        for _ in range(ROUNDS_MAX):
            if not sum([self._level(topic_id) for topic_id, readers in self._readers.items() if len(readers) > 1]):
                break
        return self._result()

    def _assign_free(self, topic_id: Uuid) -> None:
        owners = self._owners[topic_id]
        free = [index for index, owner in enumerate(owners) if owner is None]
        if not free:
            return
        lightest = [(self._loads[member_id], member_id) for member_id in self._readers[topic_id]]
        heapify(lightest)
        for index in free:
            load, member_id = lightest[0]
            self._move(topic_id, index, member_id)
            heapreplace(lightest, (load + 1, member_id))

    def _level(self, topic_id: Uuid) -> int:
        """
        Move partitions of the topic from the most to the least loaded member, while that evens out their loads.
        """
        held: dict[str, list[int]] = {}
        for index, owner in enumerate(self._owners[topic_id]):
            if owner is not None:
                held.setdefault(owner, []).append(index)
        loads, moves = self._loads, 0
        lightest = [(loads[member_id], member_id) for member_id in self._readers[topic_id]]
        heapify(lightest)
        heaviest = sorted(held, key=lambda member_id: (loads[member_id], member_id))
        while heaviest:
            giver = heaviest[-1]
            while lightest[0][0] != loads[lightest[0][1]]:  # its load has changed since
                heapreplace(lightest, (loads[lightest[0][1]], lightest[0][1]))
            load, taker = lightest[0]
            if loads[giver] - load < 2:
                break
            self._move(topic_id, held[giver].pop(), taker)
            moves += 1
            if not held[giver]:
                heaviest.pop()
            else:
                _sink(heaviest, loads)
        return moves

    def _move(self, topic_id: Uuid, index: int, member_id: str) -> None:
        owner = self._owners[topic_id][index]
        if owner is not None:
            self._loads[owner] -= 1
            self._changed.add((owner, topic_id))
        self._loads[member_id] += 1
        self._owners[topic_id][index] = member_id
        self._changed.add((member_id, topic_id))

    def _result(self) -> dict[str, Assignment]:
        moved: dict[tuple[str, Uuid], set[int]] = {changed: set() for changed in sorted(self._changed)}
        for topic_id in {topic_id for _, topic_id in self._changed}:
            for index, owner in enumerate(self._owners[topic_id]):
                if owner is not None and (owner, topic_id) in moved:
                    moved[owner, topic_id].add(index)
        kept = {member_id: dict(mine) for member_id, mine in self._kept.items()}
        for (member_id, topic_id), partitions in moved.items():
            kept[member_id].pop(topic_id, None)
            if partitions:
                kept[member_id][topic_id] = frozenset(partitions)
        return dict(kept)


def _sink(heaviest: list[str], loads: Mapping[str, int]) -> None:
    rank = len(heaviest) - 1
    while rank and loads[heaviest[rank - 1]] > loads[heaviest[rank]]:
        heaviest[rank - 1], heaviest[rank] = heaviest[rank], heaviest[rank - 1]
        rank -= 1
