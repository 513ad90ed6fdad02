"""
The embedded log: partitions as files in the form that Kafka gives them, on the disk of one machine.
"""
