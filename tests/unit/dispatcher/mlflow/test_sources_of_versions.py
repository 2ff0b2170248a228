"""Which sources of models are accepted. This field was the way into servers of MLflow again and again."""

from __future__ import annotations

import pytest

from trainmaster.dispatcher.mlflow.errors import INTERNAL, WRONG, MlflowError
from trainmaster.dispatcher.mlflow.model_sources import (
    ArtifactSource,
    LoggedModelSource,
    RunSource,
    VersionSource,
    parse_source,
)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("runs:/f00/model", RunSource("f00", ("model",))),
        ("runs:/f00/a b/c.d", RunSource("f00", ("a b", "c.d"))),
        ("runs:/f00", RunSource("f00", ())),
        ("runs:/f00/", RunSource("f00", ())),
        ("runs:/f00//model///part//", RunSource("f00", ("model", "part"))),
        ("models:/m-123", LoggedModelSource("m-123")),
        ("models:/my model/3", VersionSource("my model", 3)),
        ("models:/net/latest", VersionSource("net")),
        ("models:/net/Production", VersionSource("net", stage="Production")),
        ("models:/net@champion", VersionSource("net", alias="champion")),
        ("mlflow-artifacts:/1/f00/artifacts/model", ArtifactSource(("1", "f00", "artifacts", "model"))),
        ("mlflow-artifacts:/1/f00/artifacts//..../", ArtifactSource(("1", "f00", "artifacts", "...."))),
        ("mlflow-artifacts:/models/my%20net/2", VersionSource("my net", 2)),
    ],
)
def test_addresses_of_the_workspace(source, expected):
    assert parse_source(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        # Files of the server.
        "",
        "model",
        "/etc/passwd",
        "//etc/passwd",
        "../model",
        "~/model",
        "file:///etc/passwd",
        "FILE:/etc/passwd",
        "file:model",
        "C:\\models",
        "\\\\host\\share",
        # Upwards, in every encoding.
        "runs:/f00/../f01/model",
        "runs:/f00/%2e%2e/model",
        "runs:/f00/%252e%252e/model",
        "runs:/f00/..%2f..%2fetc",
        "runs:/f00/a%2Fb",
        "runs:/f00/..",
        "runs:/..",
        "runs:/f00/./model",
        "runs:/f00//../model",
        "runs:/f00/..\\..\\etc",
        "runs:/f00/%5c..%5cetc",
        "models:/../../etc/passwd",
        "models:/net/../1",
        "mlflow-artifacts:/../../etc/passwd",
        "mlflow-artifacts:/1/f00/artifacts/../../f01/artifacts",
        "mlflow-artifacts:/1/f00/artifacts/%2e%2e/x",
        # A query or a fragment, which some cut off and others keep.
        "runs:/f00/model?path=/etc",
        "runs:/f00/model#../../etc",
        "models:/net/1?x=/../../etc",
        "mlflow-artifacts:/1/f00/artifacts#/etc",
        "runs:/f00/model%3f..",
        "runs:/f00/model;param",
        # Characters that end a text for others.
        "runs:/f00/model\0",
        "runs:/f00/model%00.txt",
        "runs:/f00/model%2500",
        "runs:/f00/mo\ndel",
        "runs:/f00/mo%0d%0adel",
        # Other machines.
        "http://169.254.169.254/latest/meta-data",
        "https://example.com/model",
        "http://127.0.0.1:5000/api/2.0/mlflow-artifacts/artifacts/1/f00",
        "s3://bucket/model",
        "gs://bucket/model",
        "ftp://host/model",
        "dbfs:/model",
        "hdfs://host/model",
        "wasbs://a@b/c",
        "trainmaster://other",
        "runs://host/f00/model",
        "models://host/net/1",
        "mlflow-artifacts://host:5000/1/f00/artifacts",
        "mlflow-artifacts://other-workspace/1/f00/artifacts",
        "runs:///f00/model",
        # Not addresses at all.
        "runs:f00/model",
        "runs:",
        "runs:/",
        "models:/",
        "models:/a/b/c",
        "models:/net//1",
        "models:/m-123//",
        "models:/net@",
        "mlflow-artifacts:",
        "mlflow-artifacts:/",
        " runs:/f00/model",
        "Runs:/f00/model",
        "runs:/f 00/model",
        "runs:/" + "a" * 5000,
    ],
)
def test_everything_else_is_refused(source):
    with pytest.raises(MlflowError) as caught:
        parse_source(source)
    assert caught.value.code == WRONG and caught.value.status == 400


@pytest.mark.parametrize("source", ["file://host/etc", "file://123.456.789.123/path", "FILE://localhosts/etc"])
def test_files_of_other_machines_are_an_internal_error_as_in_mlflow(source):
    with pytest.raises(MlflowError, match="is not a valid remote uri") as caught:
        parse_source(source)
    assert caught.value.code == INTERNAL


@pytest.mark.parametrize("source", ["file://localhost/etc", "file:///etc", "file:/etc"])
def test_files_of_the_server_are_refused(source):
    with pytest.raises(MlflowError, match="To use a local path") as caught:
        parse_source(source)
    assert caught.value.code == WRONG
