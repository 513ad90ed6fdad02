"""
Compaction where kgateway finds no numpy.
"""

import os
from dataclasses import replace
from unittest.mock import patch

from bench.kafka.compaction import WORKLOAD as COMPACTION
from bench.kafka.compaction import rows
from bench.kafka.rounds import Plan
from bench.kafka.servers import Gateway, Server

_HIDDEN = """
import sys
sys.modules["numpy"] = None
"""


def _prepare(server: Server, plan: Plan) -> None:
    if isinstance(server, Gateway):
        hiding = server.folder / "without-numpy"
        hiding.mkdir()
        (hiding / "sitecustomize.py").write_text(_HIDDEN)
        server.stop()
        path = os.pathsep.join(filter(None, [str(hiding), os.environ.get("PYTHONPATH")]))
        with patch.dict(os.environ, PYTHONPATH=path):
            server.start()
    COMPACTION.prepare(server, plan)


WORKLOAD = replace(COMPACTION, title="compaction without numpy", rows=rows(1.5, "without numpy, "), prepare=_prepare)
