"""
Statistics of topics, counted by Spark and shown as a page.
"""
