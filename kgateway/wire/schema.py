"""
Message tables: a class body is a wire format.

The order of the fields is their order on the wire, the annotation is the type, and `v("7+")` says, in Kafka's notation,
which versions have the field. One class serves every version; only the codec knows the version.

    class Broker(Struct):
        node_id: i32
        host: str
        port: i32
        rack: str | None = v("1+", default=None)

A field without `v(...)` is in every version and must be given. The others fall back to their default, or to the empty
value of their type.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, dataclass_transform

from kgateway.wire.types import Binary, Fixed, ListOf, Referenced, StructOf, Text, UuidType, WireType, Zigzag, resolve
from kgateway.wire.uuids import ZERO

NONE = range(0)
_BEYOND = 1 << 15  # versions are i16


def parse_versions(text: str) -> range:
    """
    The versions of a text in Kafka's notation: "0-13", "7+", "3" or "none".
    """
    if text == "none":
        return NONE
    if text.endswith("+"):
        return range(int(text[:-1]), _BEYOND)
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def show_versions(versions: range) -> str:
    if not versions:
        return "none"
    if versions.stop == _BEYOND:
        return f"{versions.start}+"
    return str(versions.start) if len(versions) == 1 else f"{versions.start}-{versions.stop - 1}"


_EVERY = parse_versions("0+")
_UNSET: Any = object()


@dataclass(frozen=True, slots=True)
class _Notes:
    versions: range
    default: Any
    nullable: range | None
    tag: int | None
    classic: bool


def v(
    versions: str = "0+",
    *,
    default: Any = _UNSET,
    nullable: str | None = None,
    tag: int | None = None,
    classic: bool = False,
) -> Any:
    """
    The notes of a table on a field: its versions, its default, the versions that admit null (`| None` alone means all),
    its tag, with which it travels in the tagged section, and whether its length keeps the classic form in flexible
    versions.
    """
    admits_null = None if nullable is None else parse_versions(nullable)
    return _Notes(parse_versions(versions), default, admits_null, tag, classic)


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: WireType
    versions: range
    nullable: range
    default: Any
    required: bool
    tag: int | None
    classic: bool

    @classmethod
    def read(cls, name: str, annotation: Any, notes: _Notes | None) -> "Field":
        kind, optional = resolve(annotation)
        plain = notes or _Notes(_EVERY, _UNSET, None, None, False)
        # A tagged struct that is None is absent; only with `nullable` is it a null.
        nulls_by_default = NONE if plain.tag is not None and isinstance(kind, StructOf) else _EVERY
        nullable = (nulls_by_default if plain.nullable is None else plain.nullable) if optional else NONE
        default = _empty(kind, optional and plain.nullable is None) if plain.default is _UNSET else plain.default
        if notes and default is None and not optional:
            raise TypeError(f"{name}: a {kind} that may be left out must admit None")
        return cls(name, kind, plain.versions, nullable, default, notes is None, plain.tag, plain.classic)


def _empty(kind: WireType, optional: bool) -> Any:
    if optional:
        return None
    match kind:
        case Fixed("?"):
            return False
        case Fixed("d"):
            return 0.0
        case Fixed() | Zigzag():
            return 0
        case Text():
            return ""
        case Binary():
            return b""
        case UuidType():
            return ZERO
        case ListOf():
            return ()  # means a new list
        case Referenced() | StructOf():
            return None


@dataclass_transform(kw_only_default=True)
class StructType(type):
    """
    Makes a class with slots and a keyword constructor from a table.
    """

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> "StructType":
        # A temporary class, so that the interpreter evaluates the annotations its own way.
        own = {key: value for key, value in namespace.items() if key != "__classcell__"}
        annotations = type(name, (), own).__annotations__
        fields = tuple(
            Field.read(field, _evaluated(annotation, own), namespace.pop(field, None))
            for field, annotation in annotations.items()
            if not field.startswith("__")
        )
        namespace |= {"__slots__": tuple(f.name for f in fields), "__fields__": fields}
        if fields:
            namespace["__init__"] = _first_init
        return super().__new__(mcs, name, bases, namespace, **options)


def _evaluated(annotation: Any, body: dict[str, Any]) -> Any:
    """
    The value of an annotation of this class body. It is text in a compiled module.
    """
    return eval(annotation, vars(sys.modules[body["__module__"]]), body) if isinstance(annotation, str) else annotation


def _first_init(self: "Struct", **values: Any) -> None:
    """
    The constructor until the class makes its first instance: most tables of a process never do.
    """
    cls = type(self)
    cls.__init__ = _compile_init(cls)  # type: ignore[method-assign]
    self.__init__(**values)  # type: ignore[misc]


def _compile_init(cls: type["Struct"]) -> Callable[..., None]:
    scope: dict[str, Any] = {"unset": _UNSET}
    parameters, lines = [], []
    for field in cls.__fields__:
        name, fresh_list = field.name, field.default == ()
        scope[f"{name}_default"] = _UNSET if fresh_list else field.default
        parameters.append(name if field.required else f"{name}={name}_default")
        lines.append(f"    self.{name} = " + (f"[] if {name} is unset else {name}" if fresh_list else name))
    exec(f"def __init__(self, *, {', '.join(parameters)}):\n" + "\n".join(lines), scope)
    init: Callable[..., None] = scope["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init


class Struct(metaclass=StructType):
    __fields__: ClassVar[tuple[Field, ...]]

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, f.name) == getattr(other, f.name) for f in self.__fields__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in self.__fields__)})"


@dataclass(frozen=True, slots=True)
class Spec:
    name: str
    key: int | None
    versions: range
    flexible: range
    zigzag: bool

    @property
    def is_request(self) -> bool:
        return self.name.endswith("Request")


class Message(Struct):
    """
    A table with versions of its own: the body of a request or response, or a format inside other bytes.

    `key` is the API key, if it has one. From `flexible` on, lengths are compact and tagged fields may follow. With
    `zigzag`, lengths are signed varints, as inside a record.
    """

    __spec__: ClassVar[Spec]

    def __init_subclass__(
        cls, *, versions: str, key: int | None = None, flexible: str = "none", zigzag: bool = False, **options: Any
    ) -> None:
        super().__init_subclass__(**options)
        cls.__spec__ = Spec(cls.__name__, key, parse_versions(versions), parse_versions(flexible), zigzag)
