"""
Chaos needs clients of all kinds, so it runs only when it is named, as in `tox -e transactions`.
"""

collect_ignore = ["test_chaos.py"]
