"""Who calls, and what they may do: users, tokens, roles, sessions, sign-in, the audit log and idempotency keys."""
