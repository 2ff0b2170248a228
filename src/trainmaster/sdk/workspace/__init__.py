"""The workspace: where it lies, what it holds, its removal."""
