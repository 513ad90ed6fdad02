"""
The directive `autointerface`: an interface of zope.interface with the types that its source has, which the interface as
an object has lost.
"""

import ast
from collections.abc import Iterator
from importlib.util import find_spec
from inspect import cleandoc
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective


class AutoInterface(SphinxDirective):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        module, _, name = self.arguments[0].rpartition(".")
        spec = find_spec(module)
        assert spec
        assert spec.origin
        self.env.note_dependency(spec.origin)
        source = ast.parse(Path(spec.origin).read_text())
        [interface] = [found for found in source.body if isinstance(found, ast.ClassDef) and found.name == name]
        return self.parse_text_to_nodes("\n".join(_described(interface, module)))


def _described(interface: ast.ClassDef, module: str) -> Iterator[str]:
    yield f".. py:class:: {module}.{interface.name}"
    yield from _indented(ast.get_docstring(interface) or "")
    for member in interface.body:
        yield from map("   {}".format, _member(member))


def _member(member: ast.stmt) -> Iterator[str]:
    match member:
        case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=ast.Call(args=[description])):
            yield f".. py:attribute:: {name}"
            yield f"   :type: {ast.unparse(annotation)}"
            text = ast.literal_eval(description)
            yield from _indented(f"{text[0].upper()}{text[1:]}.")
        case ast.FunctionDef():
            # In quotes are names of what is defined further down.
            returns = ast.unparse(member.returns).strip("'") if member.returns else "None"
            yield f".. py:method:: {member.name}({ast.unparse(member.args)}) -> {returns}"
            yield from _indented(ast.get_docstring(member) or "")


def _indented(text: str) -> list[str]:
    return ["", *(f"   {line}" for line in cleandoc(text).splitlines()), ""]


def setup(app: Any) -> dict[str, bool]:
    app.add_directive("autointerface", AutoInterface)
    return {"parallel_read_safe": True}
