"""
The settings of a gateway, and where they come from.
"""
