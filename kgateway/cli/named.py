"""
Names and patterns of topics, as people give them.
"""

from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from kgateway.cli.refused import Refused
from kgateway.client.topics import Topic

_PATTERN = set("*?[")  # none of them can stand in a name
_NEAR_MAX = 3


def is_pattern(name: str) -> bool:
    """
    Whether many topics may be meant.
    """
    return bool(_PATTERN & {*name})


def chosen(known: Mapping[str, Topic], names: Sequence[str]) -> list[Topic]:
    """
    Those that are meant, each once; a pattern means no internal topics. Refused where one is not there.
    """
    found: dict[str, Topic] = {}
    problems = []
    for name in names:
        fitting = _fitting(known, name)
        if not fitting:
            problems.append(f"no topic fits {name}" if is_pattern(name) else unknown(name, known))
        found |= {topic.name: topic for topic in fitting}
    if problems:
        raise Refused("; ".join(problems))
    return [*found.values()]


def _fitting(known: Mapping[str, Topic], name: str) -> list[Topic]:
    if is_pattern(name):
        return [one for one in known.values() if not one.is_internal and fnmatchcase(one.name, name)]
    return [known[name]] if name in known else []


def unknown(name: str, known: Collection[str]) -> str:
    """
    That there is no such topic, and which one may be meant.
    """
    near = get_close_matches(name, known, n=_NEAR_MAX)
    return f"there is no topic {name}" + (f"; did you mean {' or '.join(near)}?" if near else "")
