"""
`kgateway consume`: prints records.
"""
