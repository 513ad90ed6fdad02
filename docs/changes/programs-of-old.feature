Programs of old are served: Produce 0-2 and Fetch 0-3, with message sets of magic 0 and 1 in all their codecs, are converted on the way in and out as Kafka 3.9 did.
