Gateways that wait for the topics of a SeaweedMQ cluster serve: clients know all of them, and those at work go on with the one that takes over.
