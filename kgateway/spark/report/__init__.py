"""
What is in topics, counted by Spark and shown as a page.
"""
