"""The workspace: its folder, what it contains, its removal."""
