"""What a person's program holds. It asks the dispatcher over its socket."""
