"""
Kafka's tools need Kafka, so their tests run when they are named, as `tox -e java` does; so do those in which members of
groups come to harm, which take long.
"""

collect_ignore = ["test_tools.py", "test_chaos.py", "test_restart.py"]
