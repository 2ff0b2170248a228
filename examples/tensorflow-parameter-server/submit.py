"""TensorFlow with a parameter server: two workers and one server on two nodes."""

from pathlib import Path

from trainmaster import Experiment, ParameterServer, TensorFlow, Workspace

estimator = TensorFlow(
    source_directory=str(Path(__file__).parent / "project"),
    entry_script="train.py",
    script_params={"--lr": 0.2, "--steps": 400},
    compute_target="local",
    environment_variables={"TF_CPP_MIN_LOG_LEVEL": "2"},  # TensorFlow itself prints errors only.
    node_count=2,
    distributed_training=ParameterServer(worker_count=2, parameter_server_count=1),
)
run = Experiment(Workspace.from_config(), "digits-parameter-server").submit(estimator)
run.wait_for_completion(show_output=True)
print(run.get_status(), run.get_metrics())
