"""
Who may do what.
"""
