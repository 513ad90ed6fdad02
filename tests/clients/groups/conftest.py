"""
Kafka's tools need Kafka, so their tests run when they are named, as `tox -e java` does; so do those of many
members, which take minutes, as `tox -e groups` does.
"""

collect_ignore = ["test_tools.py", "test_chaos.py", "test_restart.py"]
