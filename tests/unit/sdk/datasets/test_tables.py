"""Tables: from files to rows."""

from datetime import UTC, datetime, timedelta

import pytest

from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.datasets import Dataset, DataType, PromoteHeadersBehavior

PEOPLE = "name,age,joined\nAda,36,2020-01-05\nBob,,2020-02-07\nCyd,29,2020-03-09\n"


@pytest.fixture
def table(tmp_path):
    """Makes a dataset of tables of files and texts."""

    def make(files, kind="delimited", **options):
        for name, text in files.items():
            (tmp_path / "t" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "t" / name).write_text(text)
        return getattr(Dataset.Tabular, f"from_{kind}_files")(str(tmp_path / "t"), **options)

    return make


def records(dataset, **options):
    return dataset.to_pandas_dataframe(**options).to_dict("records")


def test_types_are_found_out(table):
    frame = table({"a.csv": PEOPLE}).to_pandas_dataframe()
    assert frame["age"].dtype.kind == "f"
    assert frame["joined"].dtype.kind == "M"
    assert list(frame["name"]) == ["Ada", "Bob", "Cyd"]


def test_types_are_left_alone(table):
    frame = table({"a.csv": PEOPLE}, infer_column_types=False).to_pandas_dataframe()
    assert frame["age"].iloc[0] == "36"
    assert list(frame["joined"]) == ["2020-01-05", "2020-02-07", "2020-03-09"]


def test_dates_that_are_none_stay_texts(table):
    frame = table({"a.csv": "d\n2020-02-30\n2020-01-01\n"}).to_pandas_dataframe()
    assert list(frame["d"]) == ["2020-02-30", "2020-01-01"]


def test_types_that_are_asked_for(table):
    types = {
        "a": DataType.to_long(),
        "b": DataType.to_bool(),
        "c": DataType.to_string(),
        "d": DataType.to_datetime("%d.%m.%Y"),
        "e": DataType.to_float(),
    }
    dataset = table({"a.csv": "a,b,c,d,e\n1,true,7,05.01.2020,1\n2,False,8,x,y\n"}, set_column_types=types)
    first, second = records(dataset)
    assert (first["a"], first["b"], first["c"], first["e"]) == (1, True, "7", 1.0)
    assert first["d"] == datetime(2020, 1, 5)
    assert str(second["d"]) == "NaT"
    with pytest.raises(UserErrorException, match=r"column '(d|e)' cannot be read as"):
        dataset.to_pandas_dataframe(on_error="fail", out_of_range_datetime="fail")


@pytest.mark.parametrize("header", [False, PromoteHeadersBehavior.NO_HEADERS])
def test_without_a_header(table, header):
    assert records(table({"a.tsv": "1\t2\n"}, separator="\t", header=header)) == [{"Column1": 1, "Column2": 2}]


def test_files_are_joined_in_order_with_their_paths(table):
    dataset = table({"b.csv": "x\n2\n", "a.csv": "x\n1\n", "c.csv": ""}, include_path=True)
    assert records(dataset) == [{"Path": "/a.csv", "x": 1}, {"Path": "/b.csv", "x": 2}]


def test_columns_from_the_folders(table):
    dataset = table({"north/2020/01/02/d.csv": "x\n1\n"}, partition_format="{region}/{day:yyyy/MM/dd}/d.csv")
    assert records(dataset) == [{"region": "north", "day": datetime(2020, 1, 2), "x": 1}]
    with pytest.raises(UserErrorException, match="does not match the partition_format"):
        table({}, partition_format="{region}/other.csv").to_pandas_dataframe()


def test_empty_values_and_encodings(table, tmp_path):
    assert records(table({"a.csv": "x,y\n,1\n"}, empty_as_string=True)) == [{"x": "", "y": 1}]
    (tmp_path / "latin.csv").write_bytes("näme\n1\n".encode("iso-8859-1"))
    latin = Dataset.Tabular.from_delimited_files(str(tmp_path / "latin.csv"), encoding="iso88591")
    assert records(latin) == [{"näme": 1}]
    with pytest.raises(UserErrorException, match=r"latin\.csv cannot be read as delimited"):
        Dataset.Tabular.from_delimited_files(str(tmp_path / "latin.csv")).to_pandas_dataframe()


def test_json_lines(table):
    dataset = table({"a.jsonl": '{"x": 1}\n\n{"x": 2, "y": "z"}\n'}, "json_lines")
    assert [row["x"] for row in records(dataset)] == [1, 2]
    broken = {"a.jsonl": '{"x": 1}\n[2]\nnone\n'}
    assert records(table(broken, "json_lines", invalid_lines="drop")) == [{"x": 1}]
    with pytest.raises(UserErrorException, match="line 2"):
        table(broken, "json_lines").to_pandas_dataframe()


def test_parquet(tmp_path):
    import pandas

    pandas.DataFrame({"x": [1, 2, 3]}).to_parquet(tmp_path / "a.parquet")
    dataset = Dataset.Tabular.from_parquet_files(str(tmp_path / "a.parquet"))
    assert records(dataset.skip(1).take(1)) == [{"x": 2}]
    (tmp_path / "a.parquet").write_text("no parquet")
    with pytest.raises(UserErrorException, match=r"a\.parquet cannot be read as parquet"):
        dataset.to_pandas_dataframe()


def test_nothing_is_read_before_rows_are_wanted(table, tmp_path):
    dataset = table({"a.csv": PEOPLE}).keep_columns("name").take(1)
    (tmp_path / "t/a.csv").write_text(PEOPLE.replace("Ada", "Eve"))
    assert records(dataset) == [{"name": "Eve"}]


def test_rows_and_columns(table):
    people = table({"a.csv": PEOPLE})
    assert records(people.keep_columns(["age", "name"]).skip(2)) == [{"age": 29, "name": "Cyd"}]
    assert list(people.drop_columns("joined").to_pandas_dataframe().columns) == ["name", "age"]
    train, test = people.random_split(0.5, seed=3)
    names = [row["name"] for part in (train, test) for row in records(part)]
    assert sorted(names) == ["Ada", "Bob", "Cyd"]
    assert train.id != test.id


def test_times(table):
    people = table({"a.csv": PEOPLE}).with_timestamp_columns("joined")
    assert people.timestamp_columns == ("joined", None)

    def names(dataset):
        return [row["name"] for row in records(dataset)]

    middle = datetime(2020, 2, 7)
    assert names(people.time_before(middle)) == ["Ada", "Bob"]
    assert names(people.time_before(middle, include_boundary=False)) == ["Ada"]
    assert names(people.time_after(middle, include_boundary=False)) == ["Cyd"]
    assert names(people.time_between(datetime(2020, 2, 1), datetime(2020, 2, 28))) == ["Bob"]
    assert names(people.time_after(middle.replace(tzinfo=UTC))) == ["Bob", "Cyd"]
    assert names(people.time_recent(timedelta(days=1))) == []
    assert names(people.time_recent(timedelta(days=36500))) == ["Ada", "Bob", "Cyd"]


@pytest.mark.parametrize(
    ("do", "message"),
    [
        (
            lambda t: t.keep_columns("no").to_pandas_dataframe(),
            r"keep_columns names a column .* 'no'\nIt has: name, age",
        ),
        (lambda t: t.drop_columns(["no"]).to_pandas_dataframe(), "drop_columns names a column"),
        (lambda t: t.keep_columns("no", validate=True), "keep_columns names a column"),
        (lambda t: t.keep_columns(7), "columns must be"),
        (lambda t: t.take(-1), "whole number, 0 or more"),
        (lambda t: t.random_split(80), "from 0 to 1"),
        (lambda t: t.time_after(datetime(2020, 1, 1)), "which column holds the time"),
        (lambda t: t.with_timestamp_columns("age").time_recent(7), "timedelta"),
        (lambda t: t.with_timestamp_columns("joined").time_after("2020"), "must be a datetime"),
        (lambda t: t.to_pandas_dataframe(on_error="ignore"), "'null' or 'fail'"),
        (lambda t: t.as_named_input("d").as_mount(), "rows, not files"),
        (lambda t: t.update(description="x"), "registered"),
    ],
)
def test_what_is_refused(table, do, message):
    with pytest.raises(UserErrorException, match=message):
        do(table({"a.csv": PEOPLE}))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"separator": ""}, "separator"),
        ({"encoding": "klingon"}, "unknown encoding 'klingon'"),
        ({"header": "yes"}, "header must be"),
        ({"set_column_types": {"a": int}}, "must be a DataType"),
    ],
)
def test_options_that_are_refused(table, options, message):
    with pytest.raises(UserErrorException, match=message):
        table({"a.csv": PEOPLE}, **options)


def test_without_pandas_it_says_so(table, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(UserErrorException, match="needs pandas"):
        table({"a.csv": PEOPLE}).to_pandas_dataframe()


def test_rare_members_say_what_to_use_instead(table):
    with pytest.raises(NotImplementedError, match="to_pandas_dataframe"):
        table({"a.csv": PEOPLE}).to_csv_files()


def test_rows_are_kept_by_conditions(table):
    people = table({"a.csv": PEOPLE})

    def names(condition):
        return [each["name"] for each in records(people.filter(condition))]

    assert names(people["age"] > 30) == ["Ada"]
    assert names((people["age"] <= 36) & (people["name"] != "Ada")) == ["Cyd"]
    assert names((people["name"] == "Bob") | ~(people["age"] >= 30)) == ["Bob", "Cyd"]
    assert names(people["age"] == None) == ["Bob"]  # noqa: E711
    assert names(people["joined"] >= datetime(2020, 2, 7)) == ["Bob", "Cyd"]
    # Steps are done in their order, and conditions are kept with the dataset.
    assert [each["name"] for each in records(people.take(2).filter(people["age"] < 99))] == ["Ada"]


def test_a_line_break_as_the_separator_gives_lines(table):
    lines = {"a.txt": '{"data": [1, 2]}\n\n{"data": [3]}\n'}
    assert records(table(lines, separator="\n", header=False)) == [
        {"Column1": '{"data": [1, 2]}'},
        {"Column1": '{"data": [3]}'},
    ]
    assert records(table(lines, separator="\n", header=False).take(1)) == [{"Column1": '{"data": [1, 2]}'}]
    assert records(table({"a.txt": "title\nfirst\n"}, separator="\n")) == [{"title": "first"}]


@pytest.mark.parametrize("wrong", [None, "age > 3", lambda people: people["age"]])
def test_what_is_no_condition(table, wrong):
    people = table({"a.csv": PEOPLE})
    with pytest.raises(UserErrorException, match=r"dataset\.filter\(dataset\['age'\] > 30\)"):
        people.filter(wrong(people) if callable(wrong) else wrong)


def test_conditions_that_cannot_be(table):
    people = table({"a.csv": PEOPLE})
    with pytest.raises(UserErrorException, match="Write & for 'and'"):
        assert people["age"] > 3 and people["age"] < 5
    with pytest.raises(UserErrorException, match=r"'nothing'(?s:.)*It has: name, age"):
        records(people.filter(people["nothing"] > 3))
    with pytest.raises(UserErrorException, match="cannot be compared"):
        records(people.filter(people["name"] > 3))
    with pytest.raises(UserErrorException, match="compared with"):
        people.filter(people["name"] == object())
    with pytest.raises(TypeError):
        list(people)


def test_a_frame_is_not_kept_without_a_package_for_it(tmp_path):
    class Frame:
        def to_parquet(self, *args, **options):
            raise ImportError("no engine")

    from trainmaster.sdk.datasets import factories

    with pytest.raises(UserErrorException, match="pip install pyarrow"):
        factories._write_parquet(Frame(), tmp_path / "x", {})
