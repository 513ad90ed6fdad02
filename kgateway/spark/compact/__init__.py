"""
The latest record of each key: as tables of their own, and as all that stays in an archive.
"""
