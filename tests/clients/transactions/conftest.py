"""
Chaos with clients of all kinds needs these, so it runs when it is named, as `tox -e transactions` does.
"""

collect_ignore = ["test_chaos.py"]
