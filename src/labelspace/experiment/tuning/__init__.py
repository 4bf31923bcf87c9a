"""Search for good parameters of a method."""
