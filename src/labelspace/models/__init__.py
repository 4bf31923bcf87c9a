"""The contract, the registry, and one file per method."""
