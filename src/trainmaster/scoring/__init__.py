"""What runs once per scoring service."""
