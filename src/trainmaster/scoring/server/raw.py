"""Raw requests, with v1's names: a `run` decorated with `rawhttp` gets the request and not only its text.

Scripts import this as `azureml.contrib.services.aml_request` and `.aml_response`; the server puts it there.
"""

from __future__ import annotations

import io
import json
import shutil
from email.message import Message
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any, Callable, Dict, Iterable, Iterator, MutableMapping, Optional, Tuple, TypeVar, Union
from urllib.parse import parse_qsl

F = TypeVar("F", bound=Callable[..., Any])

_MARK = "__raw_http__"


def rawhttp(run: F) -> F:
    """Decorates `run`: it gets an AMLRequest and returns an AMLResponse, or anything that can be written as JSON."""
    setattr(run, _MARK, True)
    return run


def is_raw(run: Callable[..., Any]) -> bool:
    """Whether this function is decorated with `rawhttp`."""
    return bool(getattr(run, _MARK, False))


class Headers(MutableMapping[str, str]):
    """Headers with case-insensitive names."""

    def __init__(self, items: Iterable[Tuple[str, str]] = ()) -> None:
        self._items: Dict[str, Tuple[str, str]] = {}
        for name, value in items:
            self[name] = value

    def __getitem__(self, name: str) -> str:
        return self._items[name.lower()][1]

    def __setitem__(self, name: str, value: str) -> None:
        self._items[name.lower()] = (name, str(value))

    def __delitem__(self, name: str) -> None:
        del self._items[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter([name for name, _ in self._items.values()])

    def __len__(self) -> int:
        return len(self._items)


class UploadedFile(io.BytesIO):
    """One file of a form."""

    def __init__(self, content: bytes, filename: str, content_type: str) -> None:
        super().__init__(content)
        self.filename = filename
        self.content_type = self.mimetype = content_type

    def save(self, path: str) -> None:
        """Write the file to `path`."""
        with open(path, "wb") as file:
            shutil.copyfileobj(self, file)


class AMLRequest:
    """A raw request, with v1's attributes (those of a Flask request)."""

    def __init__(self, method: str, path: str, query: str, headers: Iterable[Tuple[str, str]], body: bytes) -> None:
        self.method = method
        self.path = path
        self.query_string = query.encode("latin-1")
        self.full_path = path + "?" + query
        self.headers = Headers(headers)
        self.args: Dict[str, str] = dict(parse_qsl(query, keep_blank_values=True))
        self.content_type = self.headers.get("Content-Type", "")
        self.mimetype = self.content_type.partition(";")[0].strip().lower()
        self.content_length = len(body)
        self.data = body
        self._parts: Optional[Tuple[Dict[str, str], Dict[str, UploadedFile]]] = None

    @property
    def url(self) -> str:
        """The full URL."""
        address = "http://{}{}".format(self.headers.get("Host", ""), self.path)
        return address + "?" + self.query_string.decode("latin-1") if self.query_string else address

    @property
    def is_json(self) -> bool:
        return self.mimetype == "application/json" or self.mimetype.endswith("+json")

    @property
    def json(self) -> Any:
        return self.get_json()

    @property
    def form(self) -> Dict[str, str]:
        """The fields of a form."""
        return self._form()[0]

    @property
    def files(self) -> Dict[str, UploadedFile]:
        """The files of a form."""
        return self._form()[1]

    def get_data(self, cache: bool = True, as_text: bool = False) -> Union[bytes, str]:
        """The body."""
        return self.data.decode("utf-8", "replace") if as_text else self.data

    def get_json(self, force: bool = False, silent: bool = False) -> Any:
        """Parse the body if its type is JSON (or always, with `force`). Raises ValueError if it is not valid JSON."""
        if not (force or self.is_json):
            return None
        try:
            return json.loads(self.data.decode("utf-8"))
        except ValueError:
            if silent:
                return None
            raise

    def _form(self) -> Tuple[Dict[str, str], Dict[str, UploadedFile]]:
        if self._parts is None:
            self._parts = _read_form(self.mimetype, self.content_type, self.data)
        return self._parts

    def __repr__(self) -> str:
        return "<AMLRequest {} {}>".format(self.method, self.full_path.rstrip("?"))


class AMLResponse:
    """An answer of a script, with status and headers."""

    def __init__(
        self,
        message: Any = b"",
        status_code: int = 200,
        response_headers: Any = None,
        json_str: bool = False,
        content_type: Optional[str] = None,
    ) -> None:
        self.status_code = int(status_code)
        self.headers = Headers(dict(response_headers or {}).items())
        self.data, natural = _body(message, json_str)
        if content_type or "Content-Type" not in self.headers:
            self.headers["Content-Type"] = content_type or natural

    @property
    def content_type(self) -> str:
        return self.headers["Content-Type"]

    @content_type.setter
    def content_type(self, value: str) -> None:
        self.headers["Content-Type"] = value

    def get_data(self, as_text: bool = False) -> Union[bytes, str]:
        """The body."""
        return self.data.decode("utf-8", "replace") if as_text else self.data

    def set_data(self, value: Union[bytes, str]) -> None:
        """Replace the body."""
        self.data = value.encode("utf-8") if isinstance(value, str) else bytes(value)


def _body(message: Any, as_json: bool) -> Tuple[bytes, str]:
    if not as_json and isinstance(message, (bytes, bytearray, memoryview)):
        return bytes(message), "application/octet-stream"
    if not as_json and isinstance(message, str):
        return message.encode("utf-8"), "text/plain; charset=utf-8"
    return json.dumps(message).encode("utf-8"), "application/json"


def _read_form(mimetype: str, content_type: str, body: bytes) -> Tuple[Dict[str, str], Dict[str, UploadedFile]]:
    if mimetype == "application/x-www-form-urlencoded":
        return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)), {}
    if mimetype != "multipart/form-data":
        return {}, {}
    whole = b"Content-Type: " + content_type.encode("latin-1") + b"\r\n\r\n" + body
    parts = BytesParser(policy=HTTP).parsebytes(whole).get_payload()
    fields: Dict[str, str] = {}
    files: Dict[str, UploadedFile] = {}
    for part in parts if isinstance(parts, list) else []:
        _take(part, fields, files)
    return fields, files


def _take(part: Any, fields: Dict[str, str], files: Dict[str, UploadedFile]) -> None:
    assert isinstance(part, Message)
    name = part.get_param("name", header="content-disposition")
    content = part.get_payload(decode=True)
    if not isinstance(name, str) or not isinstance(content, bytes):
        return
    filename = part.get_filename()
    if filename is None:
        fields[name] = content.decode("utf-8", "replace")
    else:
        files[name] = UploadedFile(content, filename, part.get_content_type())
