"""
Where settings are written: the command line, the environment, a TOML file.

Whatever its source, a value is first a text that knows its place: so each kind of value has one parser, and each
refusal says where to look.
"""

import difflib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kgateway.config.kinds import Kind

PREFIX = "KGATEWAY_"
BOOTSTRAP = "KGATEWAY_BOOTSTRAP"  # no setting: where commands such as `kgateway groups` find a cluster
_ADVICE = "`kgateway options` lists what there is"
# Kubernetes puts such variables into its containers when a service is called kgateway.
_OF_KUBERNETES = re.compile(r"KGATEWAY_(\w+_)?(SERVICE_(HOST|PORT(_\w+)?)=.*|PORT=\w+://.*|PORT_[0-9]+_\w+=.*)")
_TOML_TYPES = {str: "string", int: "integer", bool: "boolean", float: "float", list: "array", dict: "table"}


class SettingsError(Exception):
    """
    A setting cannot be used; the message says which, where it stands and what is allowed.
    """


@dataclass(frozen=True, slots=True)
class Option:
    """
    A row of the table.
    """

    name: str
    default: Any
    meaning: str
    kind: Kind
    kafka: str  # the broker config of Kafka that means the same
    repeats: bool

    @property
    def flag(self) -> str:
        """
        What it is called on the command line.
        """
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """
        What it is called in the environment.
        """
        return PREFIX + self.name.upper()

    @property
    def allowed(self) -> str:
        """
        What may be written.
        """
        return f"{self.kind.allowed}; may be repeated" if self.repeats else self.kind.allowed

    @property
    def shown_default(self) -> str:
        """
        The default as one would write it; empty where there is none.
        """
        values = self.default if self.repeats else [self.default]
        return " ".join(self.kind.show(value) for value in values if value is not None)


@dataclass(frozen=True, slots=True)
class Given:
    """
    What somebody wrote for an option, and where.
    """

    place: str
    texts: tuple[str, ...]


def from_arguments(rows: Iterable[Option], arguments: Sequence[str]) -> dict[str, Given]:
    """
    What the command line gives: `--name value` or `--name=value`.
    """
    called = {row.flag: row for row in rows}
    given: dict[str, Given] = {}
    rest = iter(arguments)
    for argument in rest:
        flag, equals, text = argument.partition("=")
        if not flag.startswith("-"):
            raise SettingsError(f"{argument!r} belongs to no option: write --NAME VALUE, once for each value")
        row = _row(flag, called, f"there is no option {flag}", f"{_ADVICE}, and twistd's own stand before kgateway")
        if not equals:
            text = next(rest, "--")
            if text.startswith("--"):
                raise SettingsError(f"{flag} needs a value: {row.allowed}")
        before = given[row.name].texts if row.name in given else ()
        given[row.name] = Given(flag, (*before, text))
    return given


def from_environment(rows: Iterable[Option], environ: Mapping[str, str]) -> dict[str, Given]:
    """
    What the environment gives; whitespace separates the values of an option that may be repeated.
    """
    called = {row.variable: row for row in rows}
    given = {}
    for variable, text in environ.items():
        foreign = variable == BOOTSTRAP or _OF_KUBERNETES.fullmatch(f"{variable}={text}")
        if variable.startswith(PREFIX) and not foreign:
            row = _row(variable, called, f"the environment has {variable}, which is no setting")
            given[row.name] = Given(variable, tuple(text.split()) if row.repeats else (text,))
    return given


def from_file(rows: Iterable[Option], named: Given, file_name: str) -> dict[str, Given]:
    """
    What a TOML file gives.
    """
    called = {row.name: row for row in rows}
    given = {}
    for key, value in _toml(named, file_name).items():
        row = _row(key, called, f"{file_name} has {key}, which is no setting")
        place = f"{key} in {file_name}"
        if key == "config":
            raise SettingsError(f"{place}: only the command line and the environment name a file")
        given[key] = Given(place, _texts(row, value, place))
    return given


def _toml(named: Given, file_name: str) -> dict[str, Any]:
    try:
        with open(file_name, "rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise SettingsError(f"{named.place} is {file_name}, which cannot be read: {error.strerror}") from None
    except ValueError as error:  # not TOML, and then it says the line, or not even UTF-8
        raise SettingsError(f"{named.place} is {file_name}, which is not TOML: {error}") from None


def _texts(row: Option, value: Any, place: str) -> tuple[str, ...]:
    """
    A TOML value as it would stand on the command line, for there is one parser for all sources.
    """
    listed = isinstance(value, list) and row.repeats
    items = value if listed else [value]
    wrong = [item for item in items if type(item) not in row.kind.toml]
    if wrong or listed != row.repeats:
        found = _TOML_TYPES.get(type(wrong[0] if wrong else value), "date or time")
        wanted = "array of " * row.repeats + " or ".join(_TOML_TYPES[known] for known in row.kind.toml)
        raise SettingsError(f"{place} is of type {found}: it must be of type {wanted}")
    return tuple(map(str, items))


def _row(written: str, called: Mapping[str, Option], refusal: str, advice: str = _ADVICE) -> Option:
    """
    The row that is called so in its source; the refusal says which one may have been meant.
    """
    if written in called:
        return called[written]
    plain = written.removeprefix(PREFIX).strip("-").lower()
    near = difflib.get_close_matches(plain, [row.name for row in called.values()], 1, cutoff=0.65)
    meant = next((f"did you mean {name}?" for name, row in called.items() if row.name in near), advice)
    raise SettingsError(f"{refusal}; {meant}")


def value_of(row: Option, given: Given) -> Any:
    """
    The value of what was written; of several that cannot all be meant, the last.
    """
    values = []
    for text in given.texts:
        with refusing(f"{given.place} is {text!r}"):
            values.append(row.kind.parse(text))
    return tuple(values) if row.repeats else values[-1]


@contextmanager
def refusing(place: str) -> Iterator[None]:
    """
    Say of which place a parser or a check complains.
    """
    try:
        yield
    except ValueError as error:
        raise SettingsError(f"{place}: {error}") from None
