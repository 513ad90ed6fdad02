"""
The folders that a partition has, or has had, in the filer: one for each generation of its topic.
"""

from typing import NamedTuple

from kgateway.broker.seaweedmq.kept_topic import KeptTopic
from kgateway.broker.seaweedmq.layout import Range


class Folder(NamedTuple):
    """
    A folder with log files of the partition, and what Kafka's offsets are ahead of SeaweedMQ's in it.
    """

    path: str
    shift: int
    first_message: int  # SeaweedMQ's offset of the first message that can be in it
    unix_time_ns: int  # of its generation
    part: Range


def folders_of(kept: KeptTopic, name: str, index: int, namespace: str) -> list[Folder]:
    """
    Those of a partition, oldest first. Generations of one second may share one, where their brokers count on.
    """
    found = dict[str, Folder]()
    generations = [generation for generation in kept.generations if index < len(generation.stretches)]
    for generation, (path, stretch) in zip(generations, kept.folders(name, index, namespace), strict=True):
        found.pop(path, None)
        found[path] = Folder(path, stretch.shift, stretch.message_start, generation.unix_time_ns, stretch.part)
    return list(found.values())
