"""
What the coordinators of groups and of transactions have in common: their state logs, and how they take turns.
"""
