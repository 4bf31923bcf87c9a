"""The parts of ``compare``: documents, runs of one method in a process of its own, means over seeds, results."""
