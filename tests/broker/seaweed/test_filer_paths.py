"""
Paths of entries in a filer.
"""

import pytest

from kgateway.broker.seaweed.filer.filer import path_below, split_path


@pytest.mark.parametrize(
    ("path", "folder", "name"), [("/a/b", "/a", "b"), ("/a", "/", "a"), ("/", "/", ""), ("/a/b c/d", "/a/b c", "d")]
)
def test_a_path_is_a_folder_and_a_name(path: str, folder: str, name: str) -> None:
    """
    Joined again, the two are the path.
    """
    assert split_path(path) == (folder, name)
    assert path_below(folder, name) == path


@pytest.mark.parametrize("path", ["", "a", "a/b", "/a/", "//", "/a//b"])
def test_what_is_no_path_is_refused(path: str) -> None:
    """
    A filer would interpret some of these as other paths.
    """
    with pytest.raises(ValueError, match="is not a path"):
        split_path(path)
