"""What using Trainmaster costs, each figure beside the bare thing measured in the same run."""
