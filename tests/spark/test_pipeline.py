"""
The example of docs/pipeline.md, run as the page tells newcomers to.
"""

import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow.parquet as pq
import pytest

from tests.spark.gateway import Topics

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "examples" / "pipeline.py"
PAGE = ROOT / "docs" / "pipeline.md"
COUNT, A_DAY = 2_000, 2_500
Sums = dict[tuple[str, str], int]  # of quarters and fruits


def run(folder: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    """
    The program, in a folder of its own.
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(PROGRAM), *options]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=240
    )


def expected(topics: Topics) -> Sums:
    """
    The sums of the orders of the topic, added up one by one.
    """
    sums: Sums = defaultdict(int)
    for row in topics.read("pipeline-orders").collect():
        order = json.loads(row.value)
        at = datetime.fromisoformat(order["at"])
        sums[f"{at:%Y-%m-%d %H}:{at.minute // 15 * 15:02d}", order["fruit"]] += order["cents"]
    return sums


def in_topic(topics: Topics) -> Sums:
    """
    The last sum of each key.
    """
    rows = sorted(topics.read("pipeline-sums").collect(), key=lambda row: (row.partition, row.offset))
    return {_of(row.key): json.loads(row.value)["cents"] for row in rows}


def _of(key: bytes) -> tuple[str, str]:
    day, time, fruit = key.decode().split()
    return f"{day} {time}", fruit


def in_files(folder: Path) -> Sums:
    """
    The sums of the last batch of each key.
    """
    rows: list[dict[str, Any]] = pq.read_table(folder / "sums").to_pylist()
    rows.sort(key=lambda row: int(row["batch"]))
    return {(f"{row['quarter']:%Y-%m-%d %H:%M}", row["fruit"]): row["cents"] for row in rows}


def in_picture(folder: Path) -> dict[str, int]:
    """
    The euros of each fruit in the picture.
    """
    picture = ElementTree.parse(folder / "picture.svg")
    titles = [str(title.text) for title in picture.iter("{http://www.w3.org/2000/svg}title")]
    told = [re.fullmatch(r"(\w+): ([\d,]+) euros", title) for title in titles]
    return {found[1]: int(found[2].replace(",", "")) for found in told if found}


def by_fruit(sums: Sums) -> dict[str, float]:
    total: dict[str, float] = defaultdict(float)
    for (_, fruit), cents in sums.items():
        total[fruit] += cents / 100
    return total


def test_all_orders_are_in_the_sums(topics: Topics, tmp_path: Path) -> None:
    """
    Topic, files and picture agree with the orders; a second run continues behind the first.
    """
    for number in (1, 2):
        given = "--bootstrap", topics.kafka.bootstrap, "--orders", str(COUNT), "--orders-a-day", str(A_DAY)
        ended = run(tmp_path, *given)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        assert f"{number * COUNT:,} orders in all" in ended.stdout
        sums, folder = expected(topics), tmp_path / "pipeline"
        assert topics.read("pipeline-orders").count() == number * COUNT
        assert in_topic(topics) == sums
        assert in_files(folder) == sums
        drawn = in_picture(folder)
        assert drawn == pytest.approx(by_fruit(sums), abs=1)
        assert len(drawn) == 4


def test_a_missing_gateway(tmp_path: Path) -> None:
    """
    The error is one line, before Spark starts.
    """
    ended = run(tmp_path, "--bootstrap", "127.0.0.1:1")
    assert ended.returncode == 1
    assert ended.stderr.startswith("no gateway responds: ")
    assert "Traceback" not in ended.stderr


def test_the_page_shows_the_program() -> None:
    """
    The excerpts equal the program's lines except for their indentation.
    """
    excerpts = re.findall(r"^```(?:py|sql)\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    program = "\n".join(line.strip() for line in PROGRAM.read_text().splitlines())
    assert len(excerpts) >= 4
    for excerpt in excerpts:
        assert "\n".join(line.strip() for line in excerpt.strip().splitlines()) in program, excerpt
