"""The scoring server: what runs in the model's own environment, one process per replica.

Standard library and uvicorn (with httptools, uvloop and orjson where they are there), Python 3.7. It imports nothing of
Trainmaster and knows itself only by relative imports: the folder may be copied anywhere, under any name.

    replica      one process below a supervisor         doors      connections in, HTTP on them
    application  the ASGI app: paths, keys, limits      bodies     bodies read, in time and not too large
    answering    from a request to an answer            calling    in which thread `run` is called; batches
    script       the scoring script: init, run          pace       whether `run` is quick: who shares a thread
    raw          AMLRequest, AMLResponse, rawhttp       keys       who may ask
    openapi      what /swagger.json says                numbers    counters that all replicas share
    settings     server.json                            log        lines with the id of their request
    misfit       which part of a request is wrong       porter     health, while the event loop is held up

A package that runs anywhere needs two lines: `from server.application import from_file` and
`app = from_file("server.json")`, then `uvicorn app:app`.
"""
