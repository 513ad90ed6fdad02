"""
The batches of a Produce request: appended at once, or after conversion or the consent of a coordinator, and
acknowledged.
"""
