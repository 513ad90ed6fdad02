"""
The gateway as a server: its settings, listeners and connections.
"""
