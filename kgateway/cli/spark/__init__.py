"""
`kgateway spark`: jobs of Spark on topics.
"""
