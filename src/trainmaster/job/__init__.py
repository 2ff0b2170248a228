"""The job side: copied into every job as its kit. Standard library only, Python 3.6 and up."""
