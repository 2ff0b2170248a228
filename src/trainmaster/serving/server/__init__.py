"""The scoring server: what runs in the model's own environment, one process per replica.

Standard library and uvicorn (with httptools, uvloop and orjson where they are there), Python 3.7. It imports nothing of
Trainmaster and knows itself only by relative imports: the folder may be copied anywhere, under any name.

    application  the ASGI app: paths, keys, limits      answering  from a request to an answer, with the script
    replica      one process below a supervisor         calling    in which thread `run` is called; batches
    script       the scoring script: init, run          numbers    counters that all replicas share
    openapi      what /swagger.json says                raw        AMLRequest, AMLResponse, rawhttp
    settings     server.json                            log        lines with the id of their request

A package that runs anywhere needs two lines: `from server.application import from_file` and
`app = from_file("server.json")`, then `uvicorn app:app`.
"""
