"""
A filer: entries, contents, change feed, uploads.
"""
