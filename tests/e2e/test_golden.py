"""Delta tables that other engines wrote, read here: rows, schemas, old versions, changes; and those that must be refused."""

import json
import os
import shutil
import sys

import pytest
from pyspark.errors import PySparkException

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, "..", "golden", "delta")
sys.path.insert(0, os.path.join(HERE, "..", "conformance"))
from harness import condition, rows  # noqa: E402

NAMES = sorted(n for n in os.listdir(GOLDEN) if os.path.isdir(os.path.join(GOLDEN, n)))


@pytest.fixture(scope="module")
def golden_spark(tmp_path_factory):
    from conftest import Server

    server = Server(str(tmp_path_factory.mktemp("golden")))
    session = server.session()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    yield session
    server.kill()


def table_of(name, tmp_path):
    """A copy of the table whose commits are young, so that old versions may be read."""
    path = str(tmp_path / name)
    shutil.copytree(os.path.join(GOLDEN, name, "table"), path)
    for folder, _, files in os.walk(path):
        for file in sorted(files):
            os.utime(os.path.join(folder, file))
    return path


@pytest.mark.parametrize("name", NAMES)
def test_the_newest_version_is_read(name, golden_spark, tmp_path):
    expected = json.load(open(os.path.join(GOLDEN, name, "expected.json")))
    path = table_of(name, tmp_path)
    load = golden_spark.read.format("delta").load
    if "error" in expected:
        with pytest.raises(PySparkException) as failure:
            load(path).collect()
        assert condition(failure.value) == expected["error"]["condition"]
        assert failure.value.getSqlState() == expected["error"]["sqlstate"]
        return
    df = load(path)
    if "schema" in expected:
        schema = expected["schema"]
        assert df.schema.jsonValue() == (json.loads(schema) if isinstance(schema, str) else schema)
    query = expected.get("rows_query")
    if "rows" in expected:
        got = rows(golden_spark.sql(query.replace("{table}", "delta.`%s`" % path)) if query else df)
        assert got == expected["rows"]
    assert df.count() == expected["numRows"]
    for item in expected.get("queries", []):
        assert rows(golden_spark.sql(item["sql"].replace("{table}", "delta.`%s`" % path))) == item["rows"], item["sql"]


@pytest.mark.parametrize("name", [n for n in NAMES if "versions" in open(os.path.join(GOLDEN, n, "expected.json")).read()])
def test_old_versions_are_read(name, golden_spark, tmp_path):
    expected = json.load(open(os.path.join(GOLDEN, name, "expected.json")))
    if "versions" not in expected:
        pytest.skip("the table has none")
    path = table_of(name, tmp_path)
    for version, content in expected["versions"].items():
        df = golden_spark.read.format("delta").option("versionAsOf", version).load(path)
        if "rows" in content:
            assert rows(df) == content["rows"], version
        if "numRows" in content:
            assert df.count() == content["numRows"], version
    for version, error in expected.get("missing_versions", {}).items():
        with pytest.raises(PySparkException) as failure:
            golden_spark.read.format("delta").option("versionAsOf", version).load(path).collect()
        assert condition(failure.value) == error["condition"]
