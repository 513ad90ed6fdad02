"""
The configs of topics, as a table and as a page.
"""

from pathlib import Path

import pytest

from kgateway.cli.topic_configs import as_markdown, as_text
from kgateway.cluster.config_rows import ConfigRow
from kgateway.cluster.config_table import TOPIC_CONFIGS

PAGE = Path(__file__).parents[2] / "docs" / "topic-configs.md"
ROWS = pytest.mark.parametrize("row", TOPIC_CONFIGS.values(), ids=TOPIC_CONFIGS)


def test_the_page_matches_the_table() -> None:
    """
    docs/topic-configs.md is the output of `kgateway topic-configs --markdown`.
    """
    assert as_markdown() + "\n" == PAGE.read_text()


@ROWS
def test_each_config_has_a_line(row: ConfigRow) -> None:
    """
    The line has the default, and the reason if the config has no effect.
    """
    (line,) = [line for line in as_markdown().splitlines() if line.startswith(f"| `{row.name}` |")]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[1:3] == [f"`{row.default}`" if row.default else "none", row.meaning]
    assert row.without_effect in cells[4] if row.without_effect else cells[4].startswith("yes")
    heading, *lines = as_text().splitlines()
    assert heading.split() == ["CONFIG", "DEFAULT", "NOTE"]
    (shown,) = [line for line in lines if line.startswith(f"{row.name} ")]
    assert ("no effect" in shown) == bool(row.without_effect)
