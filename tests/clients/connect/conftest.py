"""
A worker needs Java and its jars, so its test runs when it is named, as `tox -e connect` does.
"""

collect_ignore = ["test_connect.py"]
