"""
SQL over topics: what is archived and what the log has behind it, as one table.
"""
