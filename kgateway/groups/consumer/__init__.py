"""
Groups of the consumer protocol (KIP-848): the server says who reads what.
"""
