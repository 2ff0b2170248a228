"""Shows `azureml.train.sklearn` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.v1.estimators import SKLearn as SKLearn
