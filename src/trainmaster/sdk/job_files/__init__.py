"""Job files: a job as YAML, with the keys that are the options of `trainmaster submit`."""
