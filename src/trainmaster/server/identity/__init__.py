"""Who sends a request: users, tokens, roles and sessions."""
