"""Results for people: tables for the terminal, pages for the browser."""
