"""
Topics as folders of Parquet files, with proof of what is in them.
"""
