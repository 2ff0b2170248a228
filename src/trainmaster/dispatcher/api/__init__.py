"""The operations that clients can call, by noun."""
