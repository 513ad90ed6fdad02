"""
What becomes of the batches of a Produce request: appended at once, or once they are made or allowed, and acknowledged.
"""
