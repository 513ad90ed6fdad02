"""
The notebook script of the examples, run as a program.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.spark.gateway import Topics
from tests.spark.jobs import PATIENCE_S, ROOT


def test_all_cells_run(topics: Topics, tmp_path: Path) -> None:
    """
    Each cell shows what it should, and the averages are in a topic. The broken reading is found, and no other.
    """
    environment = os.environ | {"PYTHONPATH": str(ROOT), "KGATEWAY_BOOTSTRAP": topics.kafka.bootstrap}
    command = [sys.executable, str(ROOT / "examples" / "spark_notebook.py")]
    for run in (1, 2):
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        assert done.returncode == 0, done.stderr
        assert re.search(r"\|sensor-1\| +959\|", done.stdout)
        assert len(re.findall(r"\| +ERROR 17\|", done.stdout)) == 1
        assert f"{72 * run} records in notebook-hourly" in done.stdout
        assert len(re.findall(r"^sensor-\d  [▁▂▃▄▅▆▇█]{24}  [\d.]+ to [\d.]+ °C$", done.stdout, re.MULTILINE)) == 3
    assert topics.read("notebook-readings").count() == 2880
