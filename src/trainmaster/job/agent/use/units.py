"""Units of what is measured. As elsewhere in Trainmaster, a GB is 1024 MB."""

MB = float(1 << 20)
GB = float(1 << 30)
