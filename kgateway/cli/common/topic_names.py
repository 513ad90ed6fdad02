"""
Names and patterns of topics, as people give them.
"""

from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import partial

from kgateway.cli.common.errors import UnknownTopicOrPartition
from kgateway.client.cluster import Cluster
from kgateway.client.topics import TopicDescription, list_topics

_PATTERN = set("*?[")  # none of them can stand in a name
_NEAR_MAX = 3


def is_pattern(name: str) -> bool:
    return bool(_PATTERN & {*name})


def all_topics(cluster: Cluster) -> Mapping[str, TopicDescription]:
    return cluster.retry(partial(list_topics, cluster))


def matching_topics(known: Mapping[str, TopicDescription], names: Sequence[str]) -> list[TopicDescription]:
    """
    Each topic that a name or pattern matches, once; patterns do not match internal topics.
    """
    found: dict[str, TopicDescription] = {}
    problems = []
    for name in names:
        matching = _matching(known, name)
        if not matching:
            problems.append(f"no topic matches {name}" if is_pattern(name) else no_such_topic(name, known))
        found |= {topic.name: topic for topic in matching}
    if problems:
        raise UnknownTopicOrPartition("; ".join(problems))
    return [*found.values()]


def _matching(known: Mapping[str, TopicDescription], name: str) -> list[TopicDescription]:
    if is_pattern(name):
        return [one for one in known.values() if not one.is_internal and fnmatchcase(one.name, name)]
    return [known[name]] if name in known else []


def no_such_topic(name: str, known: Collection[str]) -> str:
    """
    The reason, with names that may be meant.
    """
    near = get_close_matches(name, known, n=_NEAR_MAX)
    return f"there is no topic {name}" + (f"; did you mean {' or '.join(near)}?" if near else "")
