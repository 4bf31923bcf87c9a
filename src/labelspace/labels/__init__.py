"""What can be computed of labels: trees by clustering, vectors, codes."""
