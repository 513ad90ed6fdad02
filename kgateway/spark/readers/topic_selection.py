"""
The topics and partitions that a query reads.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from kgateway.spark.errors import Unreadable, WrongOption
from kgateway.spark.logs.interface import Logs
from kgateway.spark.options import Options
from kgateway.topic_partition import TopicPartition

_WAYS = ("subscribe", "subscribePattern", "assign")


@dataclass(frozen=True, slots=True)
class TopicSelection:
    """
    Topics by name, topics by a pattern, or some of their partitions; one of the three.
    """

    names: tuple[str, ...] = ()
    pattern: str | None = None
    assigned: tuple[TopicPartition, ...] = ()

    def partitions(self, logs: Logs, *, all_there: bool = True) -> list[TopicPartition]:
        """
        The existing partitions; Unreadable if one is missing, unless that is allowed.
        """
        if self.pattern is not None:
            found = logs.partitions()
            return sorted(one for name, group in found.items() if self.has(name) for one in group)
        found = logs.partitions(self._all_names)
        there = {one for group in found.values() for one in group}
        missing = [name for name in self._all_names if name not in found]
        missing = missing or [str(one) for one in self.assigned if one not in there]
        if missing and all_there:
            raise Unreadable(f"there is no topic or partition {', '.join(missing)} in {logs}{_like(missing, logs)}")
        return sorted(there.intersection(self.assigned) if self.assigned else there)

    def has(self, topic: str) -> bool:
        return bool(re.fullmatch(self.pattern, topic)) if self.pattern is not None else topic in self._all_names

    @property
    def _all_names(self) -> list[str]:
        return list(dict.fromkeys(self.names or [one.topic for one in self.assigned]))

    def __str__(self) -> str:
        return f"topics like {self.pattern}" if self.pattern is not None else ", ".join(self._all_names)


def _like(missing: Iterable[str], logs: Logs) -> str:
    """
    Similar names, as a suggestion.
    """
    there = list(logs.partitions())
    near = dict.fromkeys(name for one in missing for name in get_close_matches(one, there))
    return f"; there is {', '.join(near)}" if near else ""


def selection_of(options: Options) -> TopicSelection:
    given = [way for way in _WAYS if options.has(way)]
    if len(given) != 1:
        which = f"not {' and '.join(given)}" if given else "but none is given"
        raise WrongOption(f"select the topics with one of {', '.join(_WAYS)}, {which}")
    match given[0]:
        case "subscribe":
            return TopicSelection(names=options.parsed("subscribe", _names, "names of topics, separated by commas"))
        case "subscribePattern":
            return TopicSelection(pattern=options.parsed("subscribePattern", _pattern, "a regular expression"))
        case _:
            return TopicSelection(assigned=options.parsed("assign", _assigned, 'JSON like {"orders": [0, 1]}'))


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise ValueError(text)
    return names


def _pattern(text: str) -> str:
    if not text:
        raise ValueError(text)
    try:
        return re.compile(text).pattern
    except re.error as error:
        raise ValueError(text) from error


def _assigned(text: str) -> tuple[TopicPartition, ...]:
    topics: Mapping[str, list[int]] = json.loads(text)
    found = tuple(TopicPartition(topic, int(index)) for topic, indexes in topics.items() for index in indexes)
    if not found:
        raise ValueError(text)
    return found
