"""What is computed of labels: co-occurrence, trees by clustering, codes, votes, ancestors."""
