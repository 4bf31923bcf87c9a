"""Store what a server keeps: feedback, documents for review, jobs and figures, in SQLite or PostgreSQL."""

from labelspace.server.database.database import Database, open_database
from labelspace.server.database.records import ACTIVE, ORDERS, STATUSES, Feedback, InboxDocument, Job, new_id

__all__ = ["ACTIVE", "ORDERS", "STATUSES", "Database", "Feedback", "InboxDocument", "Job", "new_id", "open_database"]
