"""
The disk, and the files of the embedded log that are open.
"""
