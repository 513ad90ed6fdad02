The wire codec: every message that clients and admin tools of Kafka 4.3 send, request and response, in every released version.
