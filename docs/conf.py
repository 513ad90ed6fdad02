"""
Sphinx's configuration for these pages: `tox -e docs` builds them.
"""

import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

from zope.interface.interface import InterfaceClass

from kgateway import __version__

sys.path.append(str(Path(__file__).parent))

project = "kgateway"
project_copyright = "the authors of kgateway"
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "autointerface"]

myst_heading_anchors = 4  # links to headings work as on GitHub

default_role = "code"  # docstrings have single backticks
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
InterfaceClass.__repr__ = lambda interface: interface.__name__  # in signatures

html_theme = "furo"
html_title = "kgateway"
html_copy_source = False


def improve_docstring(_app: Any, _what: str, _name: str, _object: object, _options: Any, lines: list[str]) -> None:
    """
    Mark indented lines as code, which reStructuredText takes for quotations. Drop what Python says of named tuples.
    """
    if lines and lines[0].startswith("Alias for field number"):
        lines.clear()
    begins = [number + 1 for number, (line, next_) in enumerate(pairwise(lines)) if not line and _is_indented(next_)]
    for number in reversed(begins):
        before = next((line for line in reversed(lines[:number]) if line), "")
        if not _is_indented(before):
            lines[number:number] = [".. code-block:: python", ""]


def _is_indented(line: str) -> bool:
    return line.startswith("    ")


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", improve_docstring)
