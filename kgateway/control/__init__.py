"""
How an operator asks a running gateway: one Unix socket, a line of JSON in each direction.
"""
