"""
The forms in .github: they are read as YAML, and what they ask people to run exists.
"""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kgateway.cli.commands import COMMANDS

ROOT = Path(__file__).parents[1]
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml"))
KINDS = {"checkboxes", "dropdown", "input", "markdown", "textarea"}


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_a_form_can_be_shown(path: Path) -> None:
    """
    It has a name, and fields of known kinds with different ids and labels.
    """
    form: dict[str, Any] = yaml.safe_load(path.read_text())
    assert {"name", "description", "body"} <= set(form)
    assert {field["type"] for field in form["body"]} <= KINDS
    asked = [field for field in form["body"] if field["type"] != "markdown"]
    for names in ([field["id"] for field in asked], [field["attributes"]["label"] for field in asked]):
        assert len(set(names)) == len(names) > 0


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_what_a_form_names_exists(path: Path) -> None:
    """
    Its commands of kgateway exist, and so do its pages.
    """
    text = path.read_text()
    assert set(re.findall(r"`kgateway (\w[\w-]*)", text)) <= set(COMMANDS)
    assert [page for page in re.findall(r"\b[\w/]+\.md\b", text) if not (ROOT / page).exists()] == []
