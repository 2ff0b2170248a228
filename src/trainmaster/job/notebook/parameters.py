"""The arguments of the job as variables of a notebook that has a cell with the tag `parameters`, as with papermill."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence

_TAG, _INJECTED = "parameters", "injected-parameters"


def inject(notebook: "Any", new_cell: "Callable[..., Any]", arguments: "Sequence[str]") -> None:
    """Inserts a cell that sets the arguments after the one with the tag `parameters`, if there is one."""
    cells = [cell for cell in notebook.cells if _INJECTED not in _tags(cell)]
    place = next((number for number, cell in enumerate(cells) if _TAG in _tags(cell)), None)
    values = read_parameters(arguments)
    if place is None or not values:
        return
    source = "\n".join("{} = {!r}".format(name, value) for name, value in values.items())
    cell = new_cell(source="# Parameters of the run\n" + source)
    cell["metadata"]["tags"] = [_INJECTED]
    notebook.cells = [*cells[: place + 1], cell, *cells[place + 1 :]]


def read_parameters(arguments: "Sequence[str]") -> "dict[str, Any]":
    """
    >>> read_parameters(["--learning-rate", "0.1", "--fast", "--name=digits", "--layers", "[64, 32]"])
    {'learning_rate': 0.1, 'fast': True, 'name': 'digits', 'layers': [64, 32]}
    """
    found: "dict[str, Any]" = {}
    words = list(arguments)
    while words:
        word = words.pop(0)
        if not word.startswith("--"):
            continue
        name, sign, value = word[2:].partition("=")
        if not sign and words and not words[0].startswith("--"):
            sign, value = "=", words.pop(0)
        name = name.replace("-", "_")
        if name.isidentifier():
            found[name] = _value(value) if sign else True
    return found


def _value(text: str) -> "Any":
    import ast

    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _tags(cell: "Any") -> "Sequence[str]":
    tags: "Sequence[str]" = cell.get("metadata", {}).get("tags", ())
    return tags
