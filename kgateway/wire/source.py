"""
Generated functions that know which field each of their lines handles.

A generated decoder does no bookkeeping about where it is. When it fails, the line it failed on tells the field and its
local variable `pos` the position: knowing costs nothing until it is needed.
"""

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any


@dataclass(frozen=True, slots=True)
class Step:
    """
    One of the fields a line handles: where it starts, counted from `pos`, how many bytes it takes, and, where a line
    packs it, its letter of the `struct` module and its expression.
    """

    path: str
    start: int = 0
    size: int = 0
    letter: str = ""
    value: str = ""


@dataclass(slots=True)
class Source:
    """
    The text of a function in the making.
    """

    scope: dict[str, Any]
    _lines: list[str] = field(default_factory=list)
    _steps: list[tuple[Step, ...]] = field(default_factory=list)
    _depth: int = 0

    def line(self, text: str, *steps: Step) -> None:
        self._lines.append("    " * self._depth + text)
        self._steps.append(steps)

    @contextmanager
    def block(self, header: str, *steps: Step) -> Iterator[None]:
        """
        A header that ends in a colon, and its indented body.
        """
        self.line(header, *steps)
        self._depth += 1
        yield
        self._depth -= 1

    def packer(self, letters: str, method: str) -> str:
        """
        The name in scope of a bound method of the `Struct` with this layout.
        """
        name = f"{method}_{letters.replace('?', 'bool')}"
        self.scope.setdefault(name, getattr(struct.Struct(">" + letters), method))
        return name

    def constant(self, value: object, hint: str) -> str:
        """
        The name in scope of a value.
        """
        name = hint
        while self.scope.setdefault(name, value) is not value:
            name += "_"
        return name

    @property
    def text(self) -> str:
        return "\n".join(self._lines)

    def compile(self, name: str, title: str) -> "Compiled":
        code = compile(self.text, f"<{title}>", "exec")
        exec(code, self.scope)
        return Compiled(self.scope[name], self.scope[name].__code__, self._steps)


@dataclass(frozen=True, slots=True)
class Compiled:
    """
    A generated function and the fields behind its lines.
    """

    function: Callable[..., Any]
    _code: CodeType
    _steps: list[tuple[Step, ...]]

    def blame_bytes(self, accident: Exception) -> tuple[str, int]:
        """
        The field at which decoding failed, and the position in the bytes.
        """
        frame, steps = self._failed(accident)
        position = frame.f_locals["pos"]
        left = frame.f_locals.get("size", position) - position
        step = next((s for s in steps if s.start + s.size > left), steps[0])
        return step.path, position + step.start

    def blame_value(self, misfit: Exception) -> tuple[str, Exception]:
        """
        The field at which encoding failed, and why: of a line that packs many fields, the one that cannot be packed.
        """
        frame, steps = self._failed(misfit)
        for step in steps:
            try:
                _pack(step, frame)
            except Exception as narrower:
                return step.path, narrower
        return steps[-1].path, misfit

    def _failed(self, failure: Exception) -> tuple[FrameType, tuple[Step, ...]]:
        traceback = failure.__traceback__
        while traceback and traceback.tb_frame.f_code is not self._code:
            traceback = traceback.tb_next
        if traceback is None:
            raise failure  # not of this function's making
        return traceback.tb_frame, self._steps[traceback.tb_lineno - 1]


def _pack(step: Step, frame: FrameType) -> None:
    """
    Pack one field alone.
    """
    if step.value:
        value = eval(step.value, frame.f_globals, frame.f_locals)
        if value is None:
            raise ValueError("null is not allowed here")
        struct.pack(">" + step.letter, value)
