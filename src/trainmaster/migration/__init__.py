"""What of a v1 script works here: the table of names, the reading of scripts and notebooks, the report."""
