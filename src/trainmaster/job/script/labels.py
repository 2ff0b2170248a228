"""Labels: the tags, properties and texts of a run, as this process knows and sets them."""

import os

from trainmaster.job.errors import UserErrorException
from trainmaster.job.script.values import is_text

_LONGEST_KEY = 255


class Labels:
    """Tags, properties, display name and description, for classes that have `id` and `_append(record)`."""

    _known_tags: "dict[str, str | None] | None" = None
    _known_properties: "dict[str, str | None] | None" = None
    _display_name: "str | None" = None
    _description: "str | None" = None

    @property
    def id(self):
        raise NotImplementedError

    def _append(self, record):
        raise NotImplementedError

    @property
    def name(self):
        """The display name, by its old name."""
        return self.display_name

    @property
    def display_name(self):
        """The name shown to people; may be set."""
        return self._display_name or self._initial_text("TRAINMASTER_DISPLAY_NAME") or self.id

    @display_name.setter
    def display_name(self, text):
        self._display_name = _text("display_name", text)
        self._append({"k": "set", "v": {"display_name": self._display_name}})

    @property
    def description(self):
        """A text about the run; may be set."""
        known = self._description
        return self._initial_text("TRAINMASTER_DESCRIPTION") if known is None else known

    @description.setter
    def description(self, text):
        self._description = _text("description", text)
        self._append({"k": "set", "v": {"description": self._description}})

    @property
    def tags(self):
        """The labels of the run, as this process knows them."""
        return dict(self._tags())

    @property
    def properties(self):
        """The write-once pairs of the run, as this process knows them."""
        return dict(self._properties())

    def get_tags(self):
        """The labels of the run, as this process knows them."""
        return self.tags

    def get_properties(self):
        """The write-once pairs of the run, as this process knows them."""
        return self.properties

    def tag(self, key, value=None):
        """Sets one label; the value may be None."""
        self.set_tags({key: value})

    def set_tags(self, tags):
        """Sets labels; others stay."""
        new = _pairs("tags", tags)
        self._append({"k": "tags", "v": new})
        self._tags().update(new)

    def remove_tags(self, tags):
        """Drops labels, given by their names."""
        names = [tags] if isinstance(tags, str) else [_key("a tag", name) for name in tags]
        self._append({"k": "untag", "v": names})
        for name in names:
            self._tags().pop(name, None)

    def add_properties(self, properties):
        """Adds write-once pairs; one that is there already cannot get another value."""
        new = _pairs("properties", properties)
        known = self._properties()
        for key, value in new.items():
            if known.get(key, value) != value:
                raise UserErrorException(
                    "the property {!r} cannot be changed".format(key),
                    cause="it is {!r} already".format(known[key]),
                    hint="Use a tag for what changes.",
                )
        self._append({"k": "properties", "v": new})
        known.update(new)

    def _tags(self):
        if self._known_tags is None:
            self._known_tags = self._initial_pairs("TRAINMASTER_TAGS")
        return self._known_tags

    def _properties(self):
        if self._known_properties is None:
            self._known_properties = self._initial_pairs("TRAINMASTER_PROPERTIES")
        return self._known_properties

    def _initial_text(self, variable):
        return os.environ.get(variable, "")

    def _initial_pairs(self, variable):
        import json

        try:
            pairs = json.loads(os.environ.get(variable) or "{}")
        except ValueError:
            # Scripts may change their variables; the labels in the store are not touched by that.
            return {}
        return pairs if isinstance(pairs, dict) else {}


def matches(pairs, wanted):
    """Whether `pairs` has what a query asks for: a key, or a dict in which None asks only for the key."""
    if wanted is None:
        return True
    if isinstance(wanted, str):
        return wanted in pairs
    return all(key in pairs and value in (None, pairs[key]) for key, value in wanted.items())


def _pairs(what, pairs):
    if not isinstance(pairs, dict):
        raise UserErrorException("{} have to be a dict, not {!r}".format(what, pairs))
    return {_key(what, key): None if value is None else str(value) for key, value in pairs.items()}


def _key(what, key):
    if not isinstance(key, str) or not key or len(key) > _LONGEST_KEY or not is_text(key):
        raise UserErrorException(
            "{!r} cannot name {}".format(key, what), cause="it has to be a text of 1 to 255 characters"
        )
    return key


def _text(what, text):
    if not isinstance(text, str):
        raise UserErrorException("the {} has to be a str, not {}".format(what, type(text).__name__))
    return text
