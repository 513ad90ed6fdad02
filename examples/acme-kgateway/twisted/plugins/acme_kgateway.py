"""
The plugins of acme-kgateway, for kgateway to find.
"""

from acme_kgateway.audit import seal_audit
from acme_kgateway.count_records import count_records
from acme_kgateway.delete_topics import delete_topics

__all__ = ["count_records", "delete_topics", "seal_audit"]
