"""The rows of the table of routes, by noun."""
