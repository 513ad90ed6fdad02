"""
The links of a page, and whether they lead somewhere. What is on the web is not asked for.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

_CODE = re.compile(r"^( *)(```+|~~~+).*?^\1\2$|<!--.*?-->|(`+)(?!`).+?(?<!`)\3(?!`)", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"\]\(\s*<?([^\s<>)]+)")
_HTML = re.compile(r"<(?:a|img)\b[^>]*?\b(?:href|src)\s*=\s*[\"']?([^\"'\s>]+)")
_DEFINITION = re.compile(r"^ {0,3}\[([^\]^]+)\]: *<?([^\s<>]+)", re.MULTILINE)
_REFERENCE = re.compile(r"\[([^\[\]]+)\]\[([^\[\]]*)\]")
_WEB = re.compile(r"[a-z][a-z0-9+.-]*:|//")
_HEADING = re.compile(r"^#{1,6} +(.+?)[ #]*$", re.MULTILINE)
_ID = re.compile(r"<\w+\b[^>]*?\b(?:id|name)\s*=\s*[\"']?([^\"'\s>]+)")


def broken_links(page: Path, text: str) -> list[str]:
    """
    The links of a text that would lead nowhere if the page had it.
    """
    prose = _CODE.sub("", text)
    definitions = {name.lower(): target for name, target in _DEFINITION.findall(prose)}
    targets = [*_INLINE.findall(prose), *_HTML.findall(prose), *definitions.values()]
    broken = [target for target in targets if not (_WEB.match(target) or _leads_somewhere(page, text, target))]
    names = [name or shown for shown, name in _REFERENCE.findall(prose)]
    return broken + [f"[{name}]" for name in names if name.lower() not in definitions]


def _leads_somewhere(page: Path, text: str, target: str) -> bool:
    path, _, anchor = target.partition("#")
    file = page.parent / path
    if path and not file.exists():
        return False
    if not anchor:
        return True
    return (not path or file.suffix == ".md") and anchor in set(_anchors(file.read_text() if path else text))


def _anchors(text: str) -> Iterator[str]:
    """
    The anchors of headings, as on GitHub and as MyST makes them, and those that are written out.
    """
    text = re.sub(r"^( *)(```+).*?^\1\2$", "", text, flags=re.DOTALL | re.MULTILINE)
    yield from _ID.findall(text)
    seen: Counter[str] = Counter()
    for heading in _HEADING.findall(text):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", shown).replace(" ", "-")
        yield f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor
        seen[anchor] += 1
