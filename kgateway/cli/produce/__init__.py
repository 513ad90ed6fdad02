"""
`kgateway produce`: sends records.
"""
