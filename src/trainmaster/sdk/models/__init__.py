"""Models: files with a name, a version, and where they come from.

model = Model.register(workspace, "outputs/model.pkl", "mnist", tags={"stage": "trial"})
Model(workspace, "mnist").download("here")
"""
