"""
What a command prints for programs, with --json: one object, or a line with an object for each of many records. A
failure is in the key `error`.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kgateway.cli.common.errors import CommandError, Problem

OPTION = "--json"

Json = dict[str, Any]


def error_of(problem: Problem | None) -> Json:
    """
    The key for a part that failed, such as one of several topics.
    """
    return {"error": problem.for_json()} if problem else {}


def json_line(value: Json) -> str:
    return json.dumps(value)


def lines(output: Iterable[str | Json], command: str, wants_json: Callable[[], bool]) -> Iterator[str]:
    """
    The output line by line. Objects are merged to one, which comes last, with the failure of the command if it failed.
    """
    document: Json = {}
    failure: CommandError | SystemExit | None = None
    try:
        for part in output:
            if isinstance(part, str):
                yield part
            else:
                document |= part
    except (CommandError, SystemExit) as end:
        failure = end
    if isinstance(failure, CommandError) and wants_json():
        error = {"error": {"command": command, **failure.problem.for_json()}}
        yield json.dumps(document | error, indent=2) if document else json_line(error)
    elif document:
        yield json.dumps(document, indent=2)
    if failure:
        raise failure
