"""What exists only because v1 had it."""
