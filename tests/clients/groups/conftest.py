"""
Tests of Kafka's tools need Kafka, so they run only when they are named, as in `tox -e java`; so do those of many
members, which take minutes, as in `tox -e groups`.
"""

collect_ignore = ["test_tools.py", "test_chaos.py", "test_restart.py"]
