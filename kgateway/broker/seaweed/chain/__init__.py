"""
Chains: numbered objects in a filer, each number won by one writer.
"""
