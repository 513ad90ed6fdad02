"""
What needs a cluster of its own runs when it is named, as `tox -e seaweedmq` does.
"""

collect_ignore = ["test_security.py"]
