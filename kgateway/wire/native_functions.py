"""
Generated functions that were compiled ahead of time.

A compiled build (`setup.py`) writes functions that the codec would generate at run time to a module of its own, which
has a factory for each function. The factory is named after a digest of the function's text, and called with the objects
that this text names. So the message tables decide at run time which function is right, as they do in a pure build: if a
table has changed since the build, its text is not found, and the function is generated.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from importlib import import_module
from textwrap import indent
from types import CodeType
from typing import Any

MODULE = "kgateway.wire.native"
# The variables that fit a number of the machine: positions, sizes and counts, all below 2**33 or the size of the bytes.
_NUMBERS = {"decode": re.compile(r"pos|size|end|room|most|n|(tag|stop)\d+"), "encode": re.compile("n")}
_WIDE = ", n, 64)"  # reads the rest of a number of up to 64 bits into `n`


def native_function(text: str, scope: dict[str, Any]) -> Callable[..., Any] | None:
    """
    The compiled function of this text with these names, if there is one.
    """
    try:
        module = import_module(MODULE)
    except ModuleNotFoundError:
        return None
    factory = getattr(module, _factory_name(text), None)
    return factory(scope) if factory else None


def module_text(functions: Mapping[str, Iterable[str]]) -> str:
    """
    The module with the functions of these texts, whose scopes have these names.
    """
    factories = (_factory(text, names) for text, names in functions.items())
    return "\n\n".join(["import cython", *sorted(factories)]) + "\n"


def _factory_name(text: str) -> str:
    return f"make_{blake2b(text.encode(), digest_size=16).hexdigest()}"


def _factory(text: str, names: Iterable[str]) -> str:
    [code] = (part for part in compile(text, "", "exec").co_consts if isinstance(part, CodeType))
    # The scope of a function that is in use has the function, too, whose name is that of a method of strings as well.
    used = sorted({*names} & {*code.co_names} - {code.co_name})
    numbers = [name for name in code.co_varnames if _NUMBERS[code.co_name].fullmatch(name)]
    if _WIDE in text:
        numbers.remove("n")
    types = ", ".join(f"{name}=cython.Py_ssize_t" for name in numbers)
    lines = [
        *(f"{name} = scope[{name!r}]" for name in used),
        *([f"@cython.locals({types})"] if types else []),
        *text.splitlines(),
        f"return {code.co_name}",
    ]
    return f"def {_factory_name(text)}(scope):\n" + indent("\n".join(lines), "    ")
