`kgateway topics|configs|produce|consume` for any Kafka cluster, and `kgateway clients` for who is connected to a gateway.
