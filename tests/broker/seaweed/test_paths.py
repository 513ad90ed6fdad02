"""
Paths of what is in a filer.
"""

import pytest

from kgateway.broker.seaweed.paths import below, parted


@pytest.mark.parametrize(
    ("path", "folder", "name"), [("/a/b", "/a", "b"), ("/a", "/", "a"), ("/", "/", ""), ("/a/b c/d", "/a/b c", "d")]
)
def test_a_path_is_a_folder_and_a_name(path: str, folder: str, name: str) -> None:
    """
    Put together again they are the path.
    """
    assert parted(path) == (folder, name)
    assert below(folder, name) == path


@pytest.mark.parametrize("path", ["", "a", "a/b", "/a/", "//", "/a//b"])
def test_what_is_no_path_is_refused(path: str) -> None:
    """
    A filer would take some of these for others.
    """
    with pytest.raises(ValueError, match="is no path"):
        parted(path)
