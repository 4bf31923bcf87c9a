"""Routes of the service: one file for each kind of request, and one for each client of another service."""
