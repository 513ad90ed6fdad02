"""
A catalogue of all messages that have a table.

It walks the package, so that a new module is enough to add an API. It imports them all, for documents, tests and tools;
a server imports only the messages that its handlers name.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pkgutil import walk_packages

import kgateway.messages
from kgateway.wire.schema import Message


@dataclass(frozen=True, slots=True)
class Api:
    """
    The two messages of an API key.
    """

    key: int
    name: str
    request: type[Message]
    response: type[Message]

    @property
    def purpose(self) -> str:
        """
        What the API is for, as the docstring of its module says behind its name.
        """
        page = sys.modules[self.request.__module__].__doc__ or ""
        line = re.search(rf"^{self.name}: (.*)$", page, re.MULTILINE)
        return line[1].rstrip(".") if line else ""


def messages() -> list[type[Message]]:
    return [message for name in _module_names() for message in _messages_in(name)]


def apis() -> dict[int, Api]:
    pairs: dict[int, dict[bool, type[Message]]] = {}
    for message in messages():
        spec = message.__spec__
        if spec.key is not None and spec.name.endswith(("Request", "Response")):
            pairs.setdefault(spec.key, {})[spec.is_request] = message
    return {
        key: Api(key, pair[True].__spec__.name.removesuffix("Request"), pair[True], pair[False])
        for key, pair in sorted(pairs.items())
    }


def _module_names() -> Iterator[str]:
    prefix = kgateway.messages.__name__ + "."
    return (module.name for module in walk_packages(kgateway.messages.__path__, prefix))


def _messages_in(name: str) -> Iterator[type[Message]]:
    for value in vars(import_module(name)).values():
        if isinstance(value, type) and issubclass(value, Message) and value.__module__ == name:
            yield value
