"""Reading GraphQL: values, variables, fragments, and the limits that keep a query small."""

from __future__ import annotations

import pytest

from trainmaster.server.mlflow.graph_language import QueryError, Selection, read_query


def test_a_query_with_everything() -> None:
    query = read_query(
        """
        # Commas are optional.
        query Wanted($id: ID!, $most: Int = 3, $kinds: [String!]) @component(name: "x") {
            first: run(input: {id: $id, most: $most, kinds: $kinds, deep: [1, -2.5e3, true, null, ENUM]}) @live {
                ...Parts
                ... on Run { size }
                text(is: "a\\"\\u00e9\\n") long(is: \"\"\"it has "quotes" \"\"\")
            }
        }
        fragment Parts on Run { name info { ...Info } }
        fragment Info on RunInfo { id }
        """,
        {"id": "7"},
    )
    assert query.kind == "query"
    (root,) = query.selections
    assert (root.name, root.key) == ("run", "first")
    deep = [1, -2500.0, True, None, "ENUM"]
    assert root.arguments == {"input": {"id": "7", "most": 3, "kinds": None, "deep": deep}}
    assert [each.name for each in root.below] == ["name", "info", "size", "text", "long"]
    assert root.below[1].below == (Selection("id"),)
    assert root.below[3].arguments == {"is": 'a"é\n'} and root.below[4].arguments == {"is": 'it has "quotes"'}


def test_one_of_several_operations() -> None:
    text = "query a { x } mutation b { y }"
    assert read_query(text, {}, "b").kind == "mutation"
    for name in ("", "c"):
        with pytest.raises(QueryError):
            read_query(text, {}, name)


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "}", "{ a", "{ a(", "{ a(b) }", "{ a(b: ) }", "query", "query ($a: Int) ", "{ a(b: $) }", "§"),
        *("{ ...nope }", "{ ...a } fragment a on T { ...a }", "subscription { a }", '{ a(b: "x) }', "{ a: }", "{ {} }"),
        "{ a(b: " + "[" * 1000 + "]" * 1000 + ") }",
        "{ a " * 1000 + "}" * 1000,
    ],
)
def test_what_is_no_query(text: str) -> None:
    with pytest.raises(QueryError):
        read_query(text, {})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{ " + " ".join(f"a{number}" for number in range(11)) + " }", "at most 10 root fields, got 11 root fields"),
        ("{ a { " + " ".join(f"b{number}: c" for number in range(11)) + " } }", "at most 10 aliases, got 11 aliases"),
        ("{ a " * 11 + "}" * 11, "maximum depth of 10"),
        ("{ a { " + " ".join(f"b{number}" for number in range(1001)) + " } }", "maximum total selections of 1000"),
    ],
)
def test_limits(text: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        read_query(text, {})


def test_fragments_cannot_multiply() -> None:
    parts = [f"fragment f{n} on T {{ a {{ ...f{n + 1} }} b {{ ...f{n + 1} }} }}" for n in range(9)]
    with pytest.raises(QueryError, match="maximum total selections"):
        read_query("{ ...f0 } " + " ".join(parts) + " fragment f9 on T { " + "x " * 900 + "}", {})
