"""
Who of a group reads what, as the assignor `range` of all clients shares it out: topic by topic, in runs.
"""

from collections.abc import Mapping


def shared_out(
    subscriptions: Mapping[str, list[str]], partitions: Mapping[str, int]
) -> dict[str, dict[str, list[int]]]:
    """
    From the topics that each member reads, and how many partitions each topic has, to what each member gets.
    """
    shares: dict[str, dict[str, list[int]]] = {member_id: {} for member_id in subscriptions}
    for topic, count in partitions.items():
        readers = sorted(member_id for member_id, topics in subscriptions.items() if topic in topics)
        if not readers:
            continue
        each, more = divmod(count, len(readers))
        start = 0
        for place, member_id in enumerate(readers):
            stop = start + each + (place < more)
            if stop > start:
                shares[member_id][topic] = [*range(start, stop)]
            start = stop
    return shares
