Topics in Spark without a connector jar: `format("kgateway")` reads and writes them, in batches and as streams, over the protocol or from the files of the log.
