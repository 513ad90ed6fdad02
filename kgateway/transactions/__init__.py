"""
Transactions: what of them is open, how each one ends, and the markers that say so in every partition.
"""
