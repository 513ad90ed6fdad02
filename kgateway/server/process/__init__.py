"""
The process around a gateway, as twistd runs it: its options, its terminal, its signals.
"""
