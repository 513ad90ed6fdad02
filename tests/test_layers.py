"""
Which package may import which, and where Twisted may appear.

Every module of ours falls under the longest prefix that fits it; a new package needs a line here before it can land.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# package -> the packages of ours it may import, besides itself
MAY_IMPORT = {
    "kgateway": set(),
    "kgateway.wire": set(),
    "kgateway.messages": {"kgateway.wire"},
    "kgateway.records": {"kgateway.wire"},
    "kgateway.broker": {"kgateway.records", "kgateway.wire"},
    "kgateway.cli": {"kgateway", "kgateway.messages", "kgateway.wire"},
}
MAY_IMPORT_TWISTED: set[str] = set()


def _modules() -> list[tuple[str, Path]]:
    paths = sorted((ROOT / "kgateway").rglob("*.py"))
    return [(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"), path) for path in paths]


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield node.module or ""


def _package(module: str) -> str:
    fitting = [package for package in MAY_IMPORT if f"{module}.".startswith(f"{package}.")]
    return max(fitting, key=len)


@pytest.mark.parametrize(("module", "path"), _modules(), ids=[module for module, _ in _modules()])
def test_imports_go_down_the_layers(module: str, path: Path) -> None:
    """
    A module imports its own package and those its package may, and Twisted only where it may.
    """
    package = _package(module)
    assert package != "kgateway" or module == "kgateway", f"{module} belongs to no layer: give its package a line"
    for name in _imports(path):
        if name.split(".")[0] == "kgateway":
            assert _package(name) in {package, *MAY_IMPORT[package]}, f"{module} imports {name}"
        assert name.split(".")[0] != "twisted" or package in MAY_IMPORT_TWISTED, f"{module} imports {name}"
