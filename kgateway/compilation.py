"""
Compiled modules. A wheel may have a compiled form of some modules beside their sources, and Python prefers it; the
sources are the reference. `KGATEWAY_PURE=1` makes Python import the sources.
"""

import sys
from collections.abc import Iterator
from importlib.abc import PathEntryFinder
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
    SourcelessFileLoader,
)
from importlib.util import find_spec
from pathlib import Path

from kgateway.config.kinds import boolean

_FOLDER = Path(__file__).parent


def choose_form(pure: str) -> None:
    """
    Import sources only, if this value of KGATEWAY_PURE says so. A wrong value ends the program: this happens while
    kgateway is being imported, where nothing could catch another exception and print its message alone.
    """
    try:
        if boolean().parse(pure):
            prefer_sources()
    except ValueError as error:
        raise SystemExit(f"KGATEWAY_PURE is {pure!r}: {error}") from None


def prefer_sources() -> None:
    """
    Import no compiled module of this package from now on.
    """
    sources = FileFinder.path_hook((SourceFileLoader, SOURCE_SUFFIXES), (SourcelessFileLoader, BYTECODE_SUFFIXES))

    def finder(folder: str) -> PathEntryFinder:
        if not _is_ours(folder):
            raise ImportError(f"{folder} is no folder of kgateway")
        return sources(folder)

    sys.path_hooks.insert(0, finder)
    for folder in filter(_is_ours, list(sys.path_importer_cache)):
        del sys.path_importer_cache[folder]


def _is_ours(folder: str) -> bool:
    return Path(folder).is_relative_to(_FOLDER)


def form() -> str:
    """
    The form of the modules in use, for people: compiled, unless the installation has no compiled module that Python
    would import.
    """
    specs = map(find_spec, _compiled_modules())
    return "compiled" if any(spec and isinstance(spec.loader, ExtensionFileLoader) for spec in specs) else "pure Python"


def _compiled_modules() -> Iterator[str]:
    for path in _FOLDER.rglob(f"*{EXTENSION_SUFFIXES[0]}"):
        yield ".".join(path.relative_to(_FOLDER.parent).parts).removesuffix(EXTENSION_SUFFIXES[0])
