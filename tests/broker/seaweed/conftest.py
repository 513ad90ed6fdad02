"""
Tests that need a cluster of their own only run when they are named, as `tox -e seaweedmq` does.
"""

collect_ignore = ["test_security.py"]
