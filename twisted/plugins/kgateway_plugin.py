"""
`twistd kgateway`.
"""

from twisted.application.service import ServiceMaker

serve_kafka = ServiceMaker(
    "kgateway", "kgateway.server.service", "Serves Kafka clients: topics, records, consumer groups.", "kgateway"
)
