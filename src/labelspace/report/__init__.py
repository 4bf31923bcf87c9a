"""Numbers as something to look at: tables for the terminal, a page for the browser."""
