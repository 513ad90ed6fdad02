"""
The links of the pages lead somewhere.
"""

from pathlib import Path

import pytest

from tests.docs.console import ROOT
from tests.docs.links import broken_links

PAGES = sorted(
    path
    for pattern in ("*.md", ".github/*.md", "bench/**/*.md", "docs/**/*.md", "examples/**/*.md", "tests/**/*.md")
    for path in ROOT.glob(pattern)
)
BROKEN = [
    ("README.md", "[x](docs/nosuch.md)"),
    ("README.md", "[x](docs/nosuch.md#a)"),
    ("README.md", "[x](docs/operations.md#nosuch)"),
    ("README.md", "[a link of\ntwo lines](docs/nosuch.md)"),
    ("README.md", '[x](docs/nosuch.md "with a title")'),
    ("README.md", "![x](docs/images/nosuch.svg)"),
    ("README.md", '<img alt="x" src="docs/images/nosuch.svg">'),
    ("README.md", '<a href="docs/operations.md#nosuch">x</a>'),
    ("README.md", "[x][ref]"),
    ("README.md", "[x][]"),
    ("README.md", "[x][ref]\n\n[ref]: docs/nosuch.md"),
    ("README.md", "[x](LICENSE#nosuch)"),
    ("README.md", "# A heading\n\n[x](#another-heading)"),
    ("README.md", "```sh\n# no heading\n```\n[x](#no-heading)"),
    ("docs/tools.md", "[x](../README.md#nosuch)"),
    ("docs/tools.md", "[x](../examples/web_service/README.md#nosuch)"),
    ("docs/decisions/0002-dependencies.md", "[x](operations.md)"),
    ("examples/web_service/README.md", "[x](nosuch.md)"),
]
WORKING = [
    "[x](https://example.org/nosuch#a) <https://example.org>",
    "[x](docs/operations.md#let-other-machines-connect)",
    "[x](docs/images/overview.svg) [y](packaging)",
    "# `kgateway log`: twice!\n# kgateway log: twice\n[x](#kgateway-log-twice-1)",
    "[x][Ref]\n\n[ref]: README.md#run-it",
    '<a id="here"></a> [x](#here)',
    "`[x](nosuch.md)` ``a[0][1] `[y](nosuch.md)` ``",
    "```py\nrows[0][1]\n```\n<!-- [x](nosuch.md) -->",
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """
    Each names an existing file and, if it has an anchor, one of its headings.
    """
    assert broken_links(page, page.read_text()) == []


@pytest.mark.parametrize(("page", "text"), BROKEN)
def test_a_broken_link_is_found(page: str, text: str) -> None:
    """
    Whatever its form, and wherever the page is.
    """
    assert len(broken_links(ROOT / page, text)) == 1


@pytest.mark.parametrize("text", WORKING)
def test_a_working_link_is_none_of_them(text: str) -> None:
    """
    Code is no link, and the web is not asked.
    """
    assert broken_links(ROOT / "README.md", text) == []
