"""
Warnings and errors have their texts from one table, which docs/operations.md shows.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from kgateway import log_messages
from kgateway.log_messages import LogMessage

ROOT = Path(__file__).parents[1]
MESSAGES = {name: value for name, value in vars(log_messages).items() if isinstance(value, LogMessage)}
_LEVELS = {"warn", "error", "critical", "failure"}


def _sources() -> Iterator[tuple[Path, ast.Module]]:
    for top in ("kgateway", "handlers"):
        for path in sorted((ROOT / top).rglob("*.py")):
            yield path.relative_to(ROOT), ast.parse(path.read_text())


def _logged(tree: ast.Module) -> Iterator[tuple[int, ast.expr]]:
    """
    The text of each call of a logger at these levels, and its line.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            logger = ast.unparse(node.func.value).rpartition(".")[2]
            if "log" in logger.lower() and node.func.attr in _LEVELS | {"emit"}:
                yield node.lineno, node.args[node.func.attr == "emit"]


def _is_row(text: ast.expr) -> bool:
    """
    Whether this is a row, or an attribute or a local variable that holds one.
    """
    return isinstance(text, ast.Attribute) or (
        isinstance(text, ast.Name) and (text.id in MESSAGES or text.id.islower())
    )


def test_every_warning_is_in_the_table() -> None:
    """
    A call of a logger names a row, or what holds one, as in `Rounds`; never a text.
    """
    own = [
        f"{path}:{line}: {ast.unparse(text)}"
        for path, tree in _sources()
        for line, text in _logged(tree)
        if not _is_row(text)
    ]
    assert own == []


def test_every_row_is_logged() -> None:
    """
    Some module names each row.
    """
    named = {
        node.id
        for path, tree in _sources()
        if path != Path("kgateway/log_messages.py")
        for node in ast.walk(tree)
        if isinstance(node, ast.Name)
    }
    assert set(MESSAGES) - named == set()


def test_operations_show_the_table() -> None:
    """
    docs/operations.md has a row for each message, in the order of the module, with advice.
    """
    rows = []
    for message in MESSAGES.values():
        quote = "``" if "`" in message else "`"
        rows.append(f"| {quote}{message}{quote} | {message.remedy} |\n")
    assert "| line | what to do |\n|---|---|\n" + "".join(rows) in (ROOT / "docs" / "operations.md").read_text()


def test_every_row_has_advice() -> None:
    """
    The advice is a sentence.
    """
    assert [name for name, message in MESSAGES.items() if not message.remedy.endswith(".")] == []
