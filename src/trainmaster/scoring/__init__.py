"""The processes of a scoring service."""
