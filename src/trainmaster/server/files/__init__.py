"""Files that the server reads and stores for clients: of runs, datastores and contents by digest."""
