"""
Generated functions that know which field each of their lines handles.

A generated decoder does not record where it is. When it fails, the failed line names the field, and its local variable
`pos` has the position: knowing costs nothing until it is needed.
"""

import dataclasses
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from types import CodeType, FrameType
from typing import Any

from kgateway.wire.native_functions import native_function


@dataclasses.dataclass(frozen=True, slots=True)
class LineField:
    """
    One of the fields that a line handles: where it starts, counted from `pos`, how many bytes it takes, and, if a line
    packs it, its letter of the `struct` module and its expression.
    """

    path: str
    start: int = 0
    size: int = 0
    letter: str = ""
    value: str = ""


@dataclasses.dataclass(slots=True)
class FunctionSource:
    scope: dict[str, Any]
    _lines: list[str] = dataclasses.field(default_factory=list)
    _fields: list[tuple[LineField, ...]] = dataclasses.field(default_factory=list)
    _depth: int = 0

    def line(self, text: str, *fields: LineField) -> None:
        self._lines.append("    " * self._depth + text)
        self._fields.append(fields)

    @contextmanager
    def block(self, header: str, *fields: LineField) -> Iterator[None]:
        """
        A header that ends in a colon, and its indented body.
        """
        self.line(header, *fields)
        self._depth += 1
        yield
        self._depth -= 1

    def packer(self, letters: str, method: str) -> str:
        """
        The name in scope of a method of the `struct.Struct` with this layout.
        """
        name = f"{method}_{letters.replace('?', 'bool')}"
        self.scope.setdefault(name, getattr(struct.Struct(">" + letters), method))
        return name

    def constant(self, value: object, hint: str) -> str:
        name = hint
        while self.scope.setdefault(name, value) is not value:
            name += "_"
        return name

    @property
    def text(self) -> str:
        return "\n".join(self._lines)

    def compile(self, name: str, title: str) -> "Compiled":
        interpreted = partial(self._interpreted, name, title)
        native = native_function(self.text, self.scope)
        return interpreted() if native is None else Compiled(native, cache(interpreted))

    def _interpreted(self, name: str, title: str) -> "Compiled":
        code = compile(self.text, f"<{title}>", "exec")
        exec(code, self.scope)
        function = self.scope[name]
        return Compiled(function, None, function.__code__, self._fields)


@dataclasses.dataclass(frozen=True, slots=True)
class Compiled:
    """
    A generated function and the fields behind its lines. A native function leaves no frame with its variables when it
    fails, so its interpreted twin repeats the failure.
    """

    function: Callable[..., Any]
    _twin: "Callable[[], Compiled] | None"
    _code: CodeType | None = None
    _fields: list[tuple[LineField, ...]] = dataclasses.field(default_factory=list)

    def blame_bytes(self, failure: Exception, data: bytes, pos: int) -> tuple[str, int]:
        """
        The field at which decoding failed, and the position in the bytes.
        """
        if self._twin:
            twin = self._twin()
            return twin.blame_bytes(twin.failure(failure, data, pos), data, pos)
        frame, fields = self._failed(failure)
        position = frame.f_locals["pos"]
        left = frame.f_locals.get("size", position) - position
        blamed = next((field for field in fields if field.start + field.size > left), fields[0])
        return blamed.path, position + blamed.start

    def blame_value(self, failure: Exception, value: object) -> tuple[str, Exception]:
        """
        The field at which encoding failed, and why. If the line packs several fields, each is packed alone to find out.
        """
        if self._twin:
            twin = self._twin()
            return twin.blame_value(twin.failure(failure, value), value)
        frame, fields = self._failed(failure)
        for field in fields:
            try:
                _pack(field, frame)
            except Exception as narrower:
                return field.path, narrower
        return fields[-1].path, failure

    def failure(self, otherwise: Exception, *arguments: object) -> Exception:
        """
        How the function fails with these arguments.
        """
        try:
            self.function(*arguments)
        except Exception as failure:
            return failure
        return otherwise

    def _failed(self, failure: Exception) -> tuple[FrameType, tuple[LineField, ...]]:
        traceback = failure.__traceback__
        while traceback and traceback.tb_frame.f_code is not self._code:
            traceback = traceback.tb_next
        if traceback is None:
            raise failure  # the function did not raise it
        return traceback.tb_frame, self._fields[traceback.tb_lineno - 1]


def _pack(field: LineField, frame: FrameType) -> None:
    if field.value:
        value = eval(field.value, frame.f_globals, frame.f_locals)
        if value is None:
            raise ValueError("null is not allowed here")
        struct.pack(">" + field.letter, value)
