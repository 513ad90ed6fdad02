"""
The sources of settings: the command line, the environment, a TOML file, keywords of a Python program.

A value of any source is first a text that knows its place. So each kind of value has one parser, and each error says
where to look.
"""

import difflib
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from typing import Any

from kgateway.config.kinds import SettingKind

Check = Callable[[Any], None]  # of a parsed value; raises ValueError, saying what is wrong

SettingValue = str | int | PathLike[str] | Sequence[str]

PREFIX = "KGATEWAY_"
# No settings, but where commands such as `kgateway groups` find a cluster: in the environment and in a file.
BOOTSTRAP, CLUSTER = "KGATEWAY_BOOTSTRAP", "KGATEWAY_CLUSTER"
_PURE = "KGATEWAY_PURE"  # no setting either: kgateway/__init__.py reads it
CLUSTERS_KEY, DEFAULT_CLUSTER_KEY = "clusters", "cluster"
ADVICE = "`kgateway options` lists all settings"
_MEANT = {"host": "listen", "port": "listen"}  # other servers have such options
# Kubernetes sets such variables in its containers if a service is called kgateway.
_OF_KUBERNETES = re.compile(r"KGATEWAY_(\w+_)?(SERVICE_(HOST|PORT(_\w+)?)=.*|PORT=\w+://.*|PORT_[0-9]+_\w+=.*)")
_TOML_TYPES = {str: "string", int: "integer", bool: "boolean", float: "float", list: "array", dict: "table"}


class SettingsError(Exception):
    """
    A setting cannot be used. The message says which one, where it stands and what is allowed.
    """


@dataclass(frozen=True, slots=True)
class Option:
    name: str
    default: Any
    meaning: str
    kind: SettingKind
    kafka: str  # the broker config of Kafka with the same meaning
    repeats: bool

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper()

    @property
    def allowed(self) -> str:
        return f"{self.kind.allowed}; may be repeated" if self.repeats else self.kind.allowed

    @property
    def shown_default(self) -> str:
        """
        The default as a user would write it, or "".
        """
        values = self.default if self.repeats else [self.default]
        return " ".join(self.kind.show(value) for value in values if value is not None)


@dataclass(frozen=True, slots=True)
class GivenValue:
    place: str
    texts: tuple[str, ...]


def from_arguments(rows: Iterable[Option], arguments: Sequence[str], advice: str = ADVICE) -> dict[str, GivenValue]:
    """
    The settings on the command line: `--name value` or `--name=value`. The advice is for options that do not exist.
    """
    called = {row.flag: row for row in rows}
    given: dict[str, GivenValue] = {}
    rest = iter(arguments)
    for argument in rest:
        flag, equals, text = argument.partition("=")
        if not flag.startswith("-"):
            raise SettingsError(f"{argument!r} belongs to no option: write --NAME VALUE, once for each value")
        row = _row(flag, called, f"there is no option {flag}", advice)
        if not equals:
            text = next(rest, "--")
            if text.startswith("--"):
                raise SettingsError(f"{flag} needs a value: {row.allowed}")
        before = given[row.name].texts if row.name in given else ()
        given[row.name] = GivenValue(flag, (*before, text))
    return given


def from_environment(rows: Iterable[Option], environ: Mapping[str, str]) -> dict[str, GivenValue]:
    """
    The settings in the environment. Whitespace separates the values of an option that may be repeated.
    """
    called = {row.variable: row for row in rows}
    given = {}
    for variable, text in environ.items():
        foreign = variable in {BOOTSTRAP, CLUSTER, _PURE} or _OF_KUBERNETES.fullmatch(f"{variable}={text}")
        if variable.startswith(PREFIX) and not foreign:
            row = _row(variable, called, f"the environment has {variable}, which is not a setting")
            given[row.name] = GivenValue(variable, tuple(text.split()) if row.repeats else (text,))
    return given


def from_file(rows: Iterable[Option], named: GivenValue, file_name: str) -> dict[str, GivenValue]:
    called = {row.name: row for row in rows}
    given = {}
    for key, value in _toml(named, file_name).items():
        if key in {CLUSTERS_KEY, DEFAULT_CLUSTER_KEY}:
            continue
        row = _row(key, called, f"{file_name} has {key}, which is not a setting")
        place = f"{key} in {file_name}"
        if key == "config":
            raise SettingsError(f"{place}: only the command line and the environment can name a file")
        given[key] = GivenValue(place, _texts(row, value, place))
    return given


def from_keywords(rows: Iterable[Option], keywords: Mapping[str, SettingValue]) -> dict[str, GivenValue]:
    """
    The settings that a Python program names: `num_partitions=8`, `auto_create_topics=False`.
    """
    called = {row.name: row for row in rows}
    given = {}
    for name, value in keywords.items():
        row = _row(name, called, f"there is no option {name}")
        values = value if row.repeats and isinstance(value, list | tuple) else [value]
        given[name] = GivenValue(name, tuple(map(_text_of, values)))
    return given


def _text_of(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _toml(named: GivenValue, file_name: str) -> dict[str, Any]:
    try:
        with open(file_name, "rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise SettingsError(f"{named.place} is {file_name}, which cannot be read: {error.strerror}") from None
    except ValueError as error:  # not TOML, and then it says the line, or not even UTF-8
        raise SettingsError(f"{named.place} is {file_name}, which is not TOML: {error}") from None


def _texts(row: Option, value: Any, place: str) -> tuple[str, ...]:
    """
    A TOML value as it would stand on the command line, because there is one parser for all sources. One value of an
    option that may be repeated needs no array.
    """
    items = value if isinstance(value, list) and row.repeats else [value]
    wrong = [item for item in items if type(item) not in row.kind.toml]
    if wrong:
        found = _TOML_TYPES.get(type(wrong[0]), "date or time")
        types = " or ".join(_TOML_TYPES[known] for known in row.kind.toml)
        wanted = f"{types} or array of {types}" if row.repeats else types
        raise SettingsError(f"{place} is of type {found}: it must be of type {wanted}")
    return tuple(map(str, items))


def _row(written: str, called: Mapping[str, Option], refusal: str, advice: str = ADVICE) -> Option:
    """
    The row of this name in its source. The error suggests a similar name.
    """
    if written in called:
        return called[written]
    plain = written.removeprefix(PREFIX).strip("-").lower()
    near = difflib.get_close_matches(_MEANT.get(plain, plain), [row.name for row in called.values()], 1, cutoff=0.65)
    meant = next((f"did you mean {name}?" for name, row in called.items() if row.name in near), advice)
    raise SettingsError(f"{refusal}; {meant}")


def value_of(row: Option, given: GivenValue, check: Check | None = None) -> Any:
    """
    The parsed value. Of several values of an option that cannot be repeated, the last one counts.
    """
    values = []
    for text in given.texts:
        with refusing(f"{given.place} is {text!r}"):
            values.append(row.kind.parse(text))
            if check:
                check(values[-1])
    return tuple(values) if row.repeats else values[-1]


@contextmanager
def refusing(place: str) -> Iterator[None]:
    """
    Name the place in the error of a parser or a check.
    """
    try:
        yield
    except ValueError as error:
        raise SettingsError(f"{place}: {error}") from None
