"""
Regular expressions of clients, by RE2: matching takes time linear in the names, whatever the expression.

The library is imported with the first expression. It takes 2.5 MiB, and most clients subscribe to names.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Protocol

from kgateway.wire.errors import ErrorCode, KafkaError

_MEMORY_BYTES = 1 << 20  # of one compiled expression
_COMPILED_MAX = 1000
_SHOWN_CHARS = 200

MayDescribe = Callable[[str], bool]


class _Compiled(Protocol):
    def fullmatch(self, text: bytes) -> object | None: ...


def check_pattern(pattern: str) -> None:
    """
    Raise a KafkaError with the reason if this is not a regular expression.
    """
    _compiled(pattern)


def matching(pattern: str, names: Iterable[str], may_describe: MayDescribe) -> frozenset[str]:
    """
    The names that match as a whole, of those that the client may describe.
    """
    fits = _compiled(pattern).fullmatch
    return frozenset(name for name in names if fits(name.encode()) and may_describe(name))


@lru_cache(_COMPILED_MAX)
def _compiled(pattern: str) -> _Compiled:
    import re2  # type: ignore[import-untyped]  # it brings no types

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY_BYTES
    try:
        compiled: _Compiled = re2.compile(pattern.encode(errors="surrogatepass"), options)
    except re2.error as error:
        shown = pattern if len(pattern) <= _SHOWN_CHARS else pattern[:_SHOWN_CHARS] + "..."
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, f"{shown!r}: {_reason(error)}") from None
    return compiled


def _reason(error: Exception) -> str:
    reason = error.args[0] if error.args else error
    text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
    return text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "..."
