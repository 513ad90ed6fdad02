"""
Permissions: who may do what.
"""
