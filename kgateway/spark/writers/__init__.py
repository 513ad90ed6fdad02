"""
Rows into topics.
"""
