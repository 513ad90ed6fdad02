"""
Sphinx's configuration for these pages: `tox -e docs` builds them.
"""

import re
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
nitpicky = True
nitpick_ignore_regex = [("py:class", ".*")]  # in signatures, most of which have no page here
InterfaceClass.__repr__ = lambda interface: interface.__name__  # in signatures

html_theme = "furo"
html_title = "kgateway"
html_copy_source = False


DOCS = Path(__file__).parent
ROOT = DOCS.parent
_LINK = re.compile(r"\[([^\]]+)\]\(([^)#:]+)(#[^)]*)?\)")
_PAGES_OF_ROOT = {"CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"}  # pages here include them


def read_page(_app: Any, docname: str, source: list[str]) -> None:
    source[0] = within_site(source[0], DOCS / docname)


def read_include(_app: Any, path: Path, _docname: str, content: list[str]) -> None:
    content[0] = within_site(content[0], DOCS / path)


def within_site(text: str, file: Path) -> str:
    """
    Links to files of the repository that are no pages here become plain text.
    """

    def replaced(link: re.Match[str]) -> str:
        target = (file.parent / link[2]).resolve()
        if target.is_relative_to(DOCS):
            return link[0]
        if target.parent == ROOT and target.name in _PAGES_OF_ROOT:
            return f"[{link[1]}](/{target.name.lower()}{link[3] or ''})"
        return link[1]

    return _LINK.sub(replaced, text)


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
    app.connect("source-read", read_page)
    app.connect("include-read", read_include)
    app.connect("autodoc-process-docstring", improve_docstring)
