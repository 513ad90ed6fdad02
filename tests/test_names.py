"""
Module names: a reader finds a thing by the name of its file.
"""

from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES_MAX = 16  # a folder


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# A name that equals or ends with one of these says how or where, and not what.
_PARTICLES = _words(
    """
    about above across after again against ahead along among anew around aside at away back before behind below
    beside between beyond by down during elsewhere for from in inside into lately later near of off on onto out
    outside over past since soon through to together toward under until up upon with within without
    """
)
_VERBS = _words(
    """
    add ask begin build call check choose clean close compact create cut delete describe do drop end find finish
    forget get give go hold join keep know leave let list look lose make merge move open parse put read remove reset
    run say see seek send set show start stop take tell verify wait walk watch write
    """
)
_ALLOWED = {
    "embedded",  # kgateway.embedded, which users import
    "seaweed",  # SeaweedFS
    "compact",  # the command and the Spark job of that name
    "stored",  # kgateway.messages.stored: records of internal topics
    "unserved",  # kgateway.messages.unserved: messages that no handler serves
}

# One idea, implemented for more than one broker.
_SAME_IDEA = {"base", "broker", "partition", "registry", "side_files", "time_search"}


def _modules() -> list[Path]:
    return [path.relative_to(ROOT) for path in sorted((ROOT / "kgateway").rglob("*.py")) if "_pb2" not in path.name]


def _is_no_noun(name: str) -> bool:
    last = name.rpartition("_")[2]
    if "_" in name:
        return last in _PARTICLES
    stem = name.removesuffix("ing")
    is_gerund = stem != name and bool({stem, f"{stem}e", stem[:-1]} & _VERBS)
    return last in _PARTICLES or name in _VERBS or is_gerund or name.endswith("ed")


def _names() -> list[str]:
    folders = {folder for path in _modules() for folder in path.parts[:-1]}
    return sorted({path.stem for path in _modules()} | folders)


@pytest.mark.parametrize("name", [name for name in _names() if name not in _ALLOWED])
def test_modules_and_packages_are_named_by_nouns(name: str) -> None:
    """
    No name is a bare verb or participle, or ends with a preposition.
    """
    assert not _is_no_noun(name)


def test_every_exception_is_needed() -> None:
    """
    Each exception names an existing module that would fail otherwise.
    """
    assert {name for name in _ALLOWED if not _is_no_noun(name) or name not in _names()} == set()


def test_brokers_share_no_names() -> None:
    """
    A module name below `broker/` is unique, unless several brokers implement one idea.
    """
    places = defaultdict(list)
    for path in _modules():
        if path.parts[:2] == ("kgateway", "broker") and path.stem != "__init__":
            places[path.stem].append(str(path))
    assert {name: paths for name, paths in places.items() if len(paths) > 1 and name not in _SAME_IDEA} == {}


def test_folders_are_small() -> None:
    """
    A folder holds at most sixteen modules, except `messages` and `handlers`, which have one for each Kafka API.
    """
    counts: dict[Path, int] = defaultdict(int)
    for path in _modules():
        counts[path.parent] += path.stem != "__init__"
    large = {str(folder) for folder, count in counts.items() if count > MODULES_MAX}
    assert large <= {"kgateway/messages", "kgateway/handlers"}
