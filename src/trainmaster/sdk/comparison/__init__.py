"""What differs between runs, and their curves in one picture."""
