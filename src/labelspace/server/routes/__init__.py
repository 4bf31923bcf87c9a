"""The doors of the service: one file for each kind of question, and one for each client that people already have."""
