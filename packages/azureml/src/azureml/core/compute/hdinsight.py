"""Shows `azureml.core.compute.hdinsight` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.compute.attached import HDInsightCompute as HDInsightCompute
