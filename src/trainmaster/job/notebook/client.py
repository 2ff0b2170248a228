"""The client of the kernel: executes the cells, prints their output to the log, and keeps the notebook up to date."""

import importlib
import os
import sys

from trainmaster.job.notebook.executed import ExecutedNotebook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def make_client(notebook: "Any", kept: ExecutedNotebook, folder: str, start_seconds: int) -> "Any":
    """A client of nbclient, whose classes exist only in the job's environment. `folder` is for its sockets."""
    base = importlib.import_module("nbclient").NotebookClient

    class Client(base):  # type: ignore[misc, valid-type]
        """Prints what the cells print, while they print it."""

        number = 0
        failed: "dict[str, Any] | None" = None

        def process_message(self, msg: "Any", cell: "Any", cell_index: int) -> "Any":
            self.number = cell_index + 1
            result = super().process_message(msg, cell, cell_index)
            kind, content = msg["msg_type"], msg["content"]
            if kind == "error":
                self.failed = content
            else:
                _print(kind, content)
            kept.save_sometimes()
            return result

        async def async_execute_cell(self, cell: "Any", cell_index: int, **more: "Any") -> "Any":
            self.number = cell_index + 1
            result = await super().async_execute_cell(cell, cell_index, **more)
            # A cell that may fail did so.
            self.failed = None
            kept.save()
            return result

    return Client(
        notebook,
        timeout=None,
        startup_timeout=start_seconds,
        kernel_manager_class=_manager(folder),
        resources={"metadata": {"path": "."}},
    )


def _manager(folder: str) -> "Any":
    """The class that starts a kernel of this Python, whichever kernels are registered on the machine."""
    jupyter = importlib.import_module("jupyter_client")
    specs = importlib.import_module("jupyter_client.kernelspec")
    base = getattr(jupyter, "AsyncKernelManager", None) or jupyter.KernelManager

    class OwnPython(specs.KernelSpecManager):  # type: ignore[misc, name-defined]
        """Knows one kernel."""

        def get_kernel_spec(self, kernel_name: str) -> "Any":
            argv = [sys.executable, "-m", "trainmaster.job.notebook.kernel", "-f", "{connection_file}"]
            return specs.KernelSpec(argv=argv, language="python", display_name="Python")

    class Manager(base):  # type: ignore[misc, valid-type]
        """Its sockets are files: no other user of the machine can reach the kernel."""

        def __init__(self, **more: "Any") -> None:
            more.update(kernel_name="python3", kernel_spec_manager=OwnPython(), transport="ipc")
            super().__init__(connection_file=os.path.join(folder, "kernel.json"), **more)

    return Manager


def _print(kind: str, content: "Any") -> None:
    if kind == "stream":
        stream = sys.stderr if content.get("name") == "stderr" else sys.stdout
        stream.write(content.get("text", ""))
        stream.flush()
    elif kind in ("execute_result", "display_data"):
        text = content.get("data", {}).get("text/plain", "")
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
