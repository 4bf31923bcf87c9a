"""A comparison as one HTML page: table, differences, plots."""
