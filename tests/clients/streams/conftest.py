"""
The application needs Java and its jars, so its test runs when it is named, as `tox -e streams` does.
"""

collect_ignore = ["test_streams.py"]
