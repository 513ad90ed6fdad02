"""
Transactions: the coordinator, its state machine, and the markers that end a transaction in every partition.
"""
