"""
Record batches as Arrow columns.
"""
