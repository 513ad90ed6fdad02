"""
What coordinators have in common, of groups and of transactions: their state logs, and how they take turns.
"""
