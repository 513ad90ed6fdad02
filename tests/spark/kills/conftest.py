"""
Kills take minutes, so these run when they are named, as `tox -e spark-kills` does.
"""

collect_ignore_glob = ["test_*.py"]
