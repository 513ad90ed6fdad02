"""
The latest record of each key: as a table of its own, or as what remains in an archive.
"""
