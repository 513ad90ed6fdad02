"""
The application needs Java and its jars, so its test runs only when it is named, as in `tox -e streams`.
"""

collect_ignore = ["test_streams.py"]
