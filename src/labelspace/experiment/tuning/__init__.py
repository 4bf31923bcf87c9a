"""The search for good parameters of a method: its space, its trials, and what came of them."""
