"""
Topics as tables of Spark: the data source `kgateway`, and what decodes records by column. No reactor here.
"""
