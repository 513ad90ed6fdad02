"""
kgateway beside Apache Kafka, in one run, with the same clients. `python -m bench.kafka`
"""
