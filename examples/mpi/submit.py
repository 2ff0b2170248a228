"""Two nodes under Open MPI: what `make demo` shows second."""

from pathlib import Path

from trainmaster import Estimator, Experiment, Mpi, Workspace

estimator = Estimator(
    source_directory=str(Path(__file__).parent / "project"),
    entry_script="train.py",
    script_params={"--lr": 0.5, "--epochs": 8},
    compute_target="local",
    node_count=2,
    distributed_training=Mpi(process_count_per_node=1),
    pip_packages=["mpi4py", "numpy"],
)
run = Experiment(Workspace.from_config(), "digits-mpi").submit(estimator)
run.wait_for_completion(show_output=True)

print("State:   ", run.get_status())
metrics = run.get_metrics()
print(f"Metric:   loss: {metrics['loss'][0]:.4f} -> {metrics['loss'][-1]:.4f} in {len(metrics['loss'])} epochs")
print(f"Metric:   accuracy: {metrics['accuracy']:.4f}")
print("\nWhat every rank printed:  .venv/bin/trainmaster logs last --rank all")
