"""
The pipeline example without Spark; tests/spark/test_pipeline.py runs it.
"""

import os
import subprocess
import sys
from pathlib import Path

from kgateway.extras import not_installed

ROOT = Path(__file__).parents[2]


def test_the_missing_extra_is_named() -> None:
    """
    One line says how to install it.
    """
    script = "import runpy, sys; sys.modules['pyspark'] = None; runpy.run_path(sys.argv[1], run_name='__main__')"
    command = [sys.executable, "-c", script, str(ROOT / "examples" / "pipeline.py"), "--help"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.stderr == f"{not_installed(ImportError(name='pyspark'))}\n"
    assert (ended.returncode, ended.stdout) == (1, "")
