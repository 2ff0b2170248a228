"""Where we differ from v1 on purpose, each with its reason. A line that is no longer true fails the test, too."""

DIFFERENCES = {
    "azureml.core.runconfig.DockerConfiguration(arguments)": "None stands for v1's [], which all objects would share",
}
