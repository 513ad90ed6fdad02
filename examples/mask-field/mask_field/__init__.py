"""
A filter plugin that masks a field of JSON records.
"""
