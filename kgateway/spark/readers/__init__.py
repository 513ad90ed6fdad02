"""
Batch and streaming reads.
"""
