"""
A throw-away cluster of real `weed` processes.
"""
