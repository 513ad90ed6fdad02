The server, `twistd kgateway`: Kafka clients produce and consume, on a broker in memory, with topics, idempotent producers and fetch sessions.
