"""Compare several methods under one protocol."""
