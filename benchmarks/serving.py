"""What a scoring service costs: requests per second and p99 against bare uvicorn + Starlette + ONNX Runtime, and peers.

    python -m benchmarks.serving [--json] [--peers] [--seconds 5] [--rounds 5] [--connections 1 8 32]

The same small ONNX model everywhere, asked by wrk (Debian: `apt install wrk`). All servers are up at once and are
measured in turns, so that a busy machine troubles all alike; each figure is a median over the rounds, and each ratio a
median of ratios to the bare server in the same round. Environments are built once, under ~/.cache.
"""

import argparse
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"), "trainmaster-benchmarks", "serving")
START_SECONDS = 180

MODEL = ["onnxruntime", "onnx", "numpy"]
SERVE = ["uvicorn>=0.30,<1", "httptools", "uvloop", "orjson"]
BODY = {"data": [[round(0.1 * n, 1) for n in range(1, 17)]]}

MAKE_MODEL = """
import sys
import numpy, onnx
from onnx import TensorProto, helper, numpy_helper
random = numpy.random.default_rng(0)
shapes = {"W1": (16, 64), "b1": (64,), "W2": (64, 8), "b2": (8,)}
weights = [numpy_helper.from_array(random.standard_normal(s).astype("float32"), n) for n, s in shapes.items()]
nodes = [
    helper.make_node("Gemm", ["x", "W1", "b1"], ["h"]),
    helper.make_node("Relu", ["h"], ["r"]),
    helper.make_node("Gemm", ["r", "W2", "b2"], ["y"]),
]
x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 16])
y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 8])
graph = helper.make_graph(nodes, "small", [x], [y], weights)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), sys.argv[1])
"""

SESSION = """
import os
import numpy, onnxruntime
def load():
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(os.environ["MODEL"], options)
def ask(session, rows):
    return session.run(None, {"x": numpy.asarray(rows, dtype="float32")})[0]
"""

BARE = """
import orjson
from model import ask, load
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
session = load()
async def score(request):
    rows = orjson.loads(await request.body())["data"]
    return Response(orjson.dumps(ask(session, rows).tolist()), media_type="application/json")
app = Starlette(routes=[Route("/score", score, methods=["POST"])])
"""

SCORE = """
from model import ask, load
try:
    from orjson import loads
except ImportError:
    from json import loads
def init():
    global session
    session = load()
def run(data):
    return ask(session, loads(data)["data"]).tolist()
"""

SCORE_BATCH = """
from model import ask, load
from orjson import loads
def init():
    global session
    session = load()
def run(bodies):
    parts = [loads(body)["data"] for body in bodies]
    found = iter(ask(session, [row for part in parts for row in part]).tolist())
    return [[next(found) for _ in part] for part in parts]
"""

LITSERVE = """
import sys
import litserve
from model import ask, load
class Api(litserve.LitAPI):
    def setup(self, device):
        self.session = load()
    def decode_request(self, request):
        return request["data"]
    def predict(self, rows):
        return ask(self.session, rows)
    def encode_response(self, found):
        return found.tolist()
if __name__ == "__main__":
    server = litserve.LitServer(Api(), accelerator="cpu")
    server.run(port=int(sys.argv[1]), host="127.0.0.1", generate_client_file=False)
"""

MLFLOW = """
import sys
import mlflow.pyfunc
from model import ask, load
class Small(mlflow.pyfunc.PythonModel):
    def load_context(self, context):
        self.session = load()
    def predict(self, context, model_input, params=None):
        return ask(self.session, model_input).tolist()
mlflow.pyfunc.save_model(sys.argv[1], python_model=Small(), code_paths=["model.py"])
"""

BENTOML = """
import bentoml
from model import ask, load
@bentoml.service(workers=1)
class Small:
    def __init__(self):
        self.session = load()
    @bentoml.api
    def score(self, data: list) -> list:
        return ask(self.session, data).tolist()
"""


class Server:
    """One that is measured: where it listens, what it is asked, and how it is ended."""

    def __init__(self, name, port, end, path="/score", body=BODY):
        self.name, self.port, self.end = name, port, end
        self.address, self.body = f"http://127.0.0.1:{port}{path}", body

    def wait(self):
        end = time.monotonic() + START_SECONDS
        request = urllib.request.Request(
            self.address, json.dumps(self.body).encode(), {"Content-Type": "application/json"}
        )
        while True:
            try:
                with urllib.request.urlopen(request, timeout=10) as answer:
                    return answer.read()
            except (OSError, urllib.error.URLError) as error:
                if time.monotonic() > end:
                    raise SystemExit(f"{self.name} does not answer: {error}") from None
                time.sleep(0.2)


def environment(name, packages):
    """The Python of an environment with these packages; built once."""
    place = CACHE / name
    wanted = json.dumps([sys.version_info[:2], packages])
    mark = place / "packages.json"
    if not (mark.exists() and mark.read_text() == wanted):
        shutil.rmtree(place, ignore_errors=True)
        uv = shutil.which("uv") or str(Path(sys.executable).parent / "uv")
        subprocess.run([uv, "venv", "-q", "-p", sys.executable, str(place)], check=True)
        subprocess.run([uv, "pip", "install", "-q", "-p", str(place / "bin" / "python"), *packages], check=True)
        mark.write_text(wanted)
    return place / "bin" / "python"


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def start(name, command, folder, **more):
    """A server that is a program of its own."""
    port = more.pop("port")
    log = open(folder / f"{name}.log", "wb")  # noqa: SIM115 (the program has it)
    variables = {**os.environ, "MODEL": str(folder / "model.onnx"), "PYTHONPATH": str(folder), "HOME": str(folder)}
    variables["PATH"] = f"{Path(command[0]).parent}:{variables['PATH']}"
    running = subprocess.Popen(
        [str(word) for word in command], cwd=folder, env=variables, stdout=log, stderr=log, start_new_session=True
    )

    def end():
        os.killpg(running.pid, signal.SIGTERM)
        try:
            running.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()

    return Server(name, port, end, **more)


def ours(name, python, folder, script="score.py", **settings):
    """A service of Trainmaster's own."""
    from trainmaster.scoring import control
    from trainmaster.shared.service_plan import Scoring, ServicePlan

    place = folder / name.replace(" ", "-").replace(",", "")
    plan_only = {key: settings.pop(key) for key in ("replicas",) if key in settings}
    plan = ServicePlan(
        name="small",
        folder=str(place),
        generation=1,
        scoring=Scoring("small", str(folder), script, **settings),
        python=str(python),
        variables={"MODEL": str(folder / "model.onnx"), "PATH": os.environ["PATH"]},
        **plan_only,
    )
    control.start(plan)
    port = control.wait(place, 1, START_SECONDS).port
    return Server(name, port, lambda: control.stop(place) and control.wait_stopped(place, 60))


def own_servers(folder):
    """Bare, and ours in three ways."""
    from trainmaster.shared.service_plan import Batching

    python = environment("own", [*MODEL, *SERVE, "starlette"])
    subprocess.run([python, "-c", MAKE_MODEL, folder / "model.onnx"], check=True)
    port = free_port()
    bare = [python, "-m", "uvicorn", "bare:app", "--port", port, "--no-access-log", "--log-level", "warning"]
    yield start("bare", bare, folder, port=port)
    yield ours("trainmaster", python, folder)
    yield ours("trainmaster, 2 replicas", python, folder, replicas=2)
    yield ours("trainmaster, batches", python, folder, "score_batch.py", batching=Batching(32, 0.0))


def peers(folder):
    """Others, each in an environment of its own, with one worker."""
    port = free_port()
    python = environment("azureml-inference-server-http", [*MODEL, "azureml-inference-server-http"])
    command = [python.parent / "azmlinfsrv", "--entry_script", folder / "score.py", "--port", port, "--worker_count", 1]
    yield start("azureml-inference-server-http", command, folder, port=port)
    port = free_port()
    python = environment("litserve", [*MODEL, "litserve"])
    yield start("litserve", [python, "lit.py", port], folder, port=port, path="/predict")
    port = free_port()
    python = environment("mlflow", [*MODEL, "mlflow"])
    variables = {**os.environ, "MODEL": str(folder / "model.onnx"), "PYTHONPATH": str(folder)}
    subprocess.run([python, "save_mlflow.py", folder / "mlflow"], check=True, cwd=folder, env=variables)
    command = [python.parent / "mlflow", "models", "serve", "-m", folder / "mlflow", "--env-manager", "local"]
    body = {"inputs": BODY["data"]}
    yield start("mlflow", [*command, "-h", "127.0.0.1", "-p", port], folder, port=port, path="/invocations", body=body)
    port = free_port()
    python = environment("bentoml", [*MODEL, "bentoml"])
    command = [python.parent / "bentoml", "serve", "bento:Small", "--host", "127.0.0.1", "--port", port]
    yield start("bentoml", command, folder, port=port)


def ask(server, connections, seconds, folder):
    """Requests per second and the 99th percentile in milliseconds, of one round."""
    script = folder / f"{server.port}.lua"
    body = json.dumps(server.body)
    script.write_text(f"wrk.method = 'POST'\nwrk.body = '{body}'\nwrk.headers['Content-Type'] = 'application/json'\n")
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", script, server.address]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    if "Non-2xx" in said:
        raise SystemExit(f"{server.name} refused requests:\n{said}")
    number, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", said).groups()
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", said).group(1))
    return rate, float(number) * {"us": 1e-3, "ms": 1.0, "s": 1e3}[unit]


def measure(options):
    """A row for each server and number of connections."""
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is missing. On Debian and Ubuntu: apt install wrk")
    rows = []
    servers = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        programs = {"model": SESSION, "bare": BARE, "score": SCORE, "score_batch": SCORE_BATCH}
        programs.update(lit=LITSERVE, save_mlflow=MLFLOW, bento=BENTOML)
        for name, text in programs.items():
            (folder / f"{name}.py").write_text(text)
        try:
            for found in (own_servers(folder), *([peers(folder)] if options.peers else [])):
                for server in found:
                    servers.append(server)
                    server.wait()
            for connections in options.connections:
                rows += _rounds(servers, connections, options, folder)
        finally:
            for server in servers:
                server.end()
    return {"python": sys.version.split()[0], "cpus": os.cpu_count(), "rows": rows}


def _rounds(servers, connections, options, folder):
    rates = {server.name: [] for server in servers}
    tails = {server.name: [] for server in servers}
    for server in servers:
        ask(server, connections, 1, folder)
    for _ in range(options.rounds):
        for server in servers:
            rate, tail = ask(server, connections, options.seconds, folder)
            rates[server.name].append(rate)
            tails[server.name].append(tail)
    return [
        {
            "server": name,
            "connections": connections,
            "requests_per_second": statistics.median(found),
            "p99_ms": statistics.median(tails[name]),
            "ratio_to_bare": statistics.median(a / b for a, b in zip(found, rates["bare"], strict=True)),
        }
        for name, found in rates.items()
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--peers", action="store_true", help="other servers too; their environments take minutes")
    parser.add_argument("--seconds", type=int, default=4, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 8, 32])
    options = parser.parse_args()
    figures = measure(options)
    if options.json:
        print(json.dumps(figures))
        return
    print(f"{'server':32} {'connections':>11} {'requests/s':>11} {'p99 ms':>8} {'of bare':>8}")
    for row in figures["rows"]:
        print(
            f"{row['server']:32} {row['connections']:>11} {row['requests_per_second']:>11.0f} "
            f"{row['p99_ms']:>8.2f} {row['ratio_to_bare']:>8.0%}"
        )


if __name__ == "__main__":
    main()
