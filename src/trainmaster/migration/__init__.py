"""Which parts of a v1 script work here: the table of names, the analysis of scripts and notebooks, the report."""
