"""
A worker needs Java and its jars, so its test runs only when it is named, as in `tox -e connect`.
"""

collect_ignore = ["test_connect.py"]
