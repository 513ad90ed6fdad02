"""
Generated functions that know which field each of their lines handles.

A generated decoder does no bookkeeping about where it is. When it fails, the line it failed on tells the field and its
local variable `pos` the position: knowing costs nothing until it is needed.
"""

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType, TracebackType
from typing import Any


@dataclass(frozen=True, slots=True)
class Step:
    """
    One of the fields a line handles: where it starts, counted from `pos`, and how many bytes it takes.
    """

    path: str
    start: int = 0
    size: int = 0


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

    def blame(self, traceback: TracebackType | None) -> tuple[str, int]:
        """
        The field at which it failed, and the position in the bytes.
        """
        while traceback and traceback.tb_frame.f_code is not self._code:
            traceback = traceback.tb_next
        if traceback is None:
            return "?", 0
        position = traceback.tb_frame.f_locals.get("pos", 0)
        left = traceback.tb_frame.f_locals.get("size", position) - position
        steps = self._steps[traceback.tb_lineno - 1]
        step = next((s for s in steps if s.start + s.size > left), steps[0] if steps else Step("?"))
        return step.path, position + step.start
