"""
The metadata of setup.cfg, which an index shows.
"""

import re
from configparser import ConfigParser

from tests.packaging.containerfile import ROOT


def test_nothing_is_published_whose_links_are_broken() -> None:
    """
    An index resolves no relative link of the README, and refuses the upload as long as there are any.
    """
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg")
    metadata = setup["metadata"]
    relative = re.findall(
        r"\]\((?!https?:)[^)#]", (ROOT / metadata["long_description"].removeprefix("file: ")).read_text()
    )
    is_ready = "project_urls" in metadata and not relative
    assert is_ready or "Private :: Do Not Upload" in metadata["classifiers"].splitlines()
