"""
The conversion of records on their way in and out, in slices of time.
"""
