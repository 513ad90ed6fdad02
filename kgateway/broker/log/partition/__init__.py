"""
One partition of the embedded log, open.
"""
