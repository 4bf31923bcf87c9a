"""What a server keeps: feedback, documents for review, jobs, figures; in SQLite or PostgreSQL."""

from labelspace.server.database.database import Database, open_database
from labelspace.server.database.records import ORDERS, STATUSES, Feedback, InboxDocument, Job, new_id

__all__ = ["ORDERS", "STATUSES", "Database", "Feedback", "InboxDocument", "Job", "new_id", "open_database"]
