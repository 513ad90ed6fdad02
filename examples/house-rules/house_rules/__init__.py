"""
What this house asks of its topics.
"""
