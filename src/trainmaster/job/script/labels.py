"""Labels: the tags, properties and texts of a run, in jobs and outside of them."""

from trainmaster.job.errors import UserErrorException
from trainmaster.job.script.values import is_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping, Sequence

    Tags = dict[str, str | None]

_LONGEST_KEY = 255


class Labels:
    """Tags, properties, display name and description; subclasses say where they are kept."""

    @property
    def id(self) -> str:
        """The id of the run."""
        raise NotImplementedError

    def _get_text(self, name: str) -> str:
        """The `display_name` or `description` as last seen; may be empty."""
        raise NotImplementedError

    def _set_text(self, name: str, text: str) -> None:
        raise NotImplementedError

    def _get_tags(self) -> "Tags":
        """The tags as last seen."""
        raise NotImplementedError

    def _get_properties(self) -> "dict[str, str]":
        """The properties as last seen."""
        raise NotImplementedError

    def _add_tags(self, tags: "Tags") -> None:
        raise NotImplementedError

    def _drop_tags(self, names: "list[str]") -> None:
        raise NotImplementedError

    def _add_properties(self, properties: "dict[str, str]") -> None:
        raise NotImplementedError

    def _refresh_labels(self) -> None:
        """Asks for the labels again, where they can change outside of this process."""

    @property
    def name(self) -> str:
        """The display name, by its old name."""
        return self.display_name

    @property
    def display_name(self) -> str:
        """The name shown to people; may be set."""
        return self._get_text("display_name") or self.id

    @display_name.setter
    def display_name(self, text: str) -> None:
        self._set_text("display_name", check_text("display_name", text))

    @property
    def description(self) -> str:
        """A text about the run; may be set."""
        return self._get_text("description")

    @description.setter
    def description(self, text: str) -> None:
        self._set_text("description", check_text("description", text))

    @property
    def tags(self) -> "Tags":
        """The labels of the run as last seen."""
        return dict(self._get_tags())

    @property
    def properties(self) -> "dict[str, str]":
        """The write-once pairs of the run as last seen."""
        return dict(self._get_properties())

    def get_tags(self) -> "Tags":
        """The labels of the run as they are now; inside a job, as this process knows them."""
        self._refresh_labels()
        return self.tags

    def get_properties(self) -> "dict[str, str]":
        """The write-once pairs of the run as they are now; inside a job, as this process knows them."""
        self._refresh_labels()
        return self.properties

    def tag(self, key: str, value: "Any" = None) -> None:
        """Sets one label; the value may be None."""
        self.set_tags({key: value})

    def set_tags(self, tags: "Mapping[str, Any]") -> None:
        """Sets labels; others stay."""
        self._add_tags(check_tags(tags))

    def remove_tags(self, tags: "str | Sequence[str]") -> None:
        """Removes labels by their names."""
        self._drop_tags(tag_names(tags))

    def add_properties(self, properties: "Mapping[str, Any]") -> None:
        """Adds write-once pairs; an existing one cannot get another value."""
        pairs = _check_pairs("properties", "property", properties)
        self._add_properties({key: str(value) for key, value in pairs.items()})


def check_tags(tags: "Any") -> "Tags":
    """Labels as they are stored: names and values are text, a value may be None."""
    pairs = _check_pairs("tags", "tag", tags)
    return {key: None if value is None else str(value) for key, value in pairs.items()}


def tag_names(tags: "Any") -> "list[str]":
    """The names of labels as a list; a single one may be given as text."""
    return [tags] if isinstance(tags, str) else [_check_key("tag", name) for name in tags]


def as_filter(wanted: "Any") -> "Tags":
    """A name, or names and values, as a filter; the value None matches any value."""
    if wanted is None:
        return {}
    if isinstance(wanted, str):
        return {wanted: None}
    if not hasattr(wanted, "items"):
        raise UserErrorException(
            "a filter must be a name, or a dict of names and values, not {}".format(type(wanted).__name__),
            hint="Write tags='name' or tags={'name': 'value'}.",
        )
    return {str(key): None if value is None else str(value) for key, value in wanted.items()}


def matches(pairs: "Mapping[str, Any]", wanted: "str | Mapping[str, Any] | None") -> bool:
    """Whether `pairs` has what a filter asks for: a key, or a dict in which None matches any value."""
    if wanted is None:
        return True
    if isinstance(wanted, str):
        return wanted in pairs
    return all(key in pairs and value in (None, pairs[key]) for key, value in wanted.items())


def _check_pairs(what: str, one: str, pairs: "Any") -> "dict[str, Any]":
    if not hasattr(pairs, "items"):
        raise UserErrorException("{} must be a dict, not {}".format(what, type(pairs).__name__))
    return {_check_key(one, key): value for key, value in pairs.items()}


def _check_key(what: str, key: "Any") -> str:
    if not isinstance(key, str) or not key or len(key) > _LONGEST_KEY or not is_text(key):
        raise UserErrorException(
            "{!r} cannot be the name of a {}".format(str(key)[:60], what),
            hint="Use 1 to {} printable characters.".format(_LONGEST_KEY),
        )
    return key


def check_text(what: str, text: "Any") -> str:
    """A name or description; refused if it is not a text."""
    if not isinstance(text, str):
        raise UserErrorException("the {} must be a str, not {}".format(what, type(text).__name__))
    return text
