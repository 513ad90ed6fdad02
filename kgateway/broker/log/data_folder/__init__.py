"""
The files at the root of a data folder.
"""
