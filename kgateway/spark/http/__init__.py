"""
Files behind HTTP.
"""
