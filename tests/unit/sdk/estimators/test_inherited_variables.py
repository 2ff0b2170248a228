"""Which variables of the shell a job sees."""

from trainmaster.sdk.estimators.inherited import select_inherited

SEEN = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "XDG_CACHE_HOME"]
SEEN += ["http_proxy", "HTTPS_PROXY", "no_proxy", "CUDA_HOME", "REQUESTS_CA_BUNDLE"]
HIDDEN = ["AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "PYTHONPATH", "PYTHONHASHSEED", "CUDA_VISIBLE_DEVICES", "RANK"]
HIDDEN += ["TRAINMASTER_RUN_ID", "AZUREML_RUN_ID", "LD_PRELOAD", "PIP_INDEX_URL", "MY_PATH", "path"]


def test_only_what_is_listed():
    assert select_inherited(dict.fromkeys(SEEN + HIDDEN, "value")) == dict.fromkeys(SEEN, "value")


def test_a_proxy_with_a_password_is_left_out():
    given = {"http_proxy": "http://me:secret@proxy:3128", "HTTPS_PROXY": "http://proxy:3128", "PATH": "/a:/b@c"}
    assert select_inherited(given) == {"HTTPS_PROXY": "http://proxy:3128", "PATH": "/a:/b@c"}
