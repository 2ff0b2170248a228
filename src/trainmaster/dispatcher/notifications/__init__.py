"""Tells people when runs end, fail or hang: by a command, a webhook or e-mail."""
