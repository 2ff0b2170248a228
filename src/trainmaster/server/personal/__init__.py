"""`trainmaster studio`: the server, for one person on one machine and for as long as it is used."""
