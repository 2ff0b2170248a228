"""The scoring server, which runs in the model's own environment: one process per replica.

It needs Python 3.7, the standard library and uvicorn (and uses httptools, uvloop and orjson if they are installed). It
imports nothing from Trainmaster and uses only relative imports: the folder can be copied anywhere, under any name.

    replica        one process below a supervisor       acceptor         accepts connections, speaks HTTP
    application    the ASGI app: paths, keys, limits    bodies           reads bodies within time and size limits
    answering      from a request to an answer          calling          in which thread `run` is called; batches
    script         the scoring script: init, run        pace             whether `run` is fast enough to share a thread
    raw            AMLRequest, AMLResponse, rawhttp     keys             who may send requests
    openapi        the contents of /swagger.json        numbers          counters shared by all replicas
    settings       server.json                          log              log lines with the id of their request
    schema_errors  which part of a request is wrong     health_fallback  health checks while the event loop is blocked

A package that runs anywhere needs two lines: `from server.application import from_file` and
`app = from_file("server.json")`, then `uvicorn app:app`.
"""
