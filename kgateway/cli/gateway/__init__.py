"""
Commands that ask a running gateway over its control socket.
"""
