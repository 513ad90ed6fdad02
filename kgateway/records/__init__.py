"""
Records: batches, the records inside them, and the compression around those. No reactor here.
"""
