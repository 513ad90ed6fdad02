Spark reads topics of SeaweedMQ straight from the filer, and folders of segments behind HTTP, past all gateways.
