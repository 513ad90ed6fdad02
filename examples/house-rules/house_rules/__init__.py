"""
The rules of our company for topics.
"""
