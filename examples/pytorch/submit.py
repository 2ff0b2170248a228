"""The demo: one object, one call. Run it with `make demo`, or with any Python that has Trainmaster."""

from pathlib import Path

from trainmaster import Experiment, PyTorch, Workspace

ws = Workspace.from_config()
estimator = PyTorch(
    source_directory=str(Path(__file__).parent / "project"),
    entry_script="train.py",
    script_params={"--lr": 0.02, "--epochs": 60},
    compute_target="local",
    use_gpu=False,
)
run = Experiment(ws, "demo").submit(estimator)
run.wait_for_completion(show_output=True)

print("State:   ", run.get_status())
metrics = run.get_metrics()
for name, values in metrics.items():
    print(f"Metric:   {name}: {values[0]:.4f} -> {values[-1]:.4f} in {len(values)} steps")
for name in run.get_file_names():
    print("File:    ", name)
print("Tags:    ", run.get_tags())
print("\nLook again at any time:  .venv/bin/trainmaster show last")
