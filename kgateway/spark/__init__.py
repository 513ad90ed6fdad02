"""
Topics as tables of Spark: the data source `kgateway`, archives, backfills, SQL and reports. Nothing here uses a
reactor, except what writes to a filer.
"""
