"""
Broken plugins stop the start of a gateway, with a reason in plain words.
"""

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60
DROPPED = "twisted/plugins/acme.py"
CALM = """
    from kgateway.api import api, around
    from kgateway.interfaces import IApiHandler
    from kgateway.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
    from kgateway.messages.unserved.raft_voters import AddRaftVoterRequest
    from kgateway.security.permissions import Free
    from zope.interface import implementer
"""


class Broken(NamedTuple):
    """
    A file, and the expected message: which plugin, what is wrong, and what to do.
    """

    name: str
    file: str
    text: str
    said: tuple[str, ...]


PLUGINS = [
    Broken(
        "syntax",
        DROPPED,
        "from kgateway.api import api\ndef handle(:\n",
        ("twisted.plugins.acme cannot be imported: SyntaxError: invalid syntax", "fix it", 'acme.py", line 2'),
    ),
    Broken(
        "import",
        DROPPED,
        f"{CALM}    raise RuntimeError('no licence')",
        ("twisted.plugins.acme cannot be imported: RuntimeError: no licence", "fix it", 'acme.py", line 8'),
    ),
    Broken(
        "import of another module",
        DROPPED,
        "from shop_rules.quota import limit\n",
        ("twisted.plugins.acme cannot be imported: ModuleNotFoundError: No module named 'shop_rules'", "fix it"),
    ),
    Broken(
        "needs",
        "acme/handle.py",
        f"""{CALM}
    @api(DeleteTopicsRequest, DeleteTopicsResponse, versions="1-6", replaces=True, priority=1)
    def handle(request, context): ...
    """,
        ("acme.handle.handle (acme.handle) does not declare which permissions", "give needs="),
    ),
    Broken(
        "conflict",
        DROPPED,
        f"""{CALM}
    @api(DeleteTopicsRequest, DeleteTopicsResponse, versions="4-6", needs=Free("a test"), priority=1)
    def handle(request, context): ...
    """,
        (
            "twisted.plugins.acme.handle (twisted.plugins.acme)",
            "kgateway.handlers.delete_topics.delete_topics (kgateway.handlers.delete_topics)",
            "both serve DeleteTopics v4",
            "replaces=True and a priority above 0",
        ),
    ),
    Broken(
        "class",
        "acme/handle.py",
        f"""{CALM}
    @implementer(IApiHandler)
    class Handle: ...
    """,
        ("acme.handle.Handle is a class", "put `handle = Handle()` below it"),
    ),
    Broken("missing", "akme/handle.py", "", ("there is no package acme", "PYTHONPATH")),
    Broken("none", "acme/handle.py", CALM, ("acme has no plugin", "put `@api(...)` or `@around(...)`")),
    Broken(
        "wraps nothing",
        "acme/handle.py",
        f"""{CALM}
    @around(AddRaftVoterRequest)
    async def watch(request, context, proceed): ...
    """,
        ("acme.handle.watch (acme.handle) wraps AddRaftVoter, which no handler serves", "install a handler"),
    ),
]


@pytest.mark.parametrize("broken", PLUGINS, ids=lambda broken: broken.name)
def test_a_broken_plugin_stops_the_start(tmp_path: Path, broken: Broken) -> None:
    """
    The message has the plugin, the fault and what to do; the exit code is not 0, and nothing is left behind.
    """
    file = tmp_path / broken.file
    file.parent.mkdir(parents=True)
    file.write_text(dedent(broken.text))
    named = [] if broken.file == DROPPED else ["--handlers", "acme"]
    options = [
        "--listen",
        "tcp:0:interface=127.0.0.1",
        "--port-file",
        "port",
        "--control-socket",
        "control.sock",
        *named,
    ]
    run = subprocess.run(
        [sys.executable, "-m", "kgateway", "serve", *options],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert run.returncode == (2 if broken.name == "missing" else 1)
    assert "is ready" not in run.stdout
    assert "kgateway cannot start: " in run.stderr
    for part in broken.said:
        assert part in run.stderr
    assert not list(tmp_path.glob("port")) + list(tmp_path.glob("control.sock"))
