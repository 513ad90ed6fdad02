"""
Messages that the gateway neither serves nor sends: share groups, Streams groups, quotas, SCRAM, voters and telemetry.
"""
