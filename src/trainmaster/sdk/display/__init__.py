"""Text for people: tables, colours, durations, small charts."""
