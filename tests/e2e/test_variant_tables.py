"""VARIANT columns in Delta tables and Parquet files: what is written is read back, and others can read it."""

import json
import os

import pyarrow.parquet as pq
import pytest


@pytest.fixture(scope="module")
def variant_spark(tmp_path_factory):
    from conftest import Server

    server = Server(str(tmp_path_factory.mktemp("variants")))
    session = server.session()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    yield session
    server.kill()


VALUES = {
    1: '{"a":1,"b":[true,null,"x",1.5]}',
    2: "null",
    3: None,
    4: '"text"',
    5: "[]",
    6: '{"a":300,"n":{"deep":[{"x":-1},{}]}}',
}


def fill(spark, table):
    for key, text in VALUES.items():
        v = "NULL" if text is None else "parse_json('%s')" % text
        spark.sql(
            "INSERT INTO %s SELECT %d, %s, named_struct('v', %s, 'n', %d), array(%s, NULL), map('k', %s)"
            % (table, key, v, v, key, v, v)
        )


def read(spark, table, version=""):
    found = spark.sql(
        "SELECT id, to_json(v), to_json(s.v), s.n, size(a), to_json(a[0]), to_json(a[1]), to_json(m['k']) FROM %s %s"
        % (table, version)
    )
    return sorted(tuple(row) for row in found.collect())


EXPECTED = [(key, text, text, key, 2, text, None, text) for key, text in VALUES.items()]
COLUMNS = "id INT, v VARIANT, s STRUCT<v: VARIANT, n: INT>, a ARRAY<VARIANT>, m MAP<STRING, VARIANT>"


@pytest.mark.parametrize("mapping", ["none", "name", "id"])
def test_what_is_written_is_read_back(variant_spark, tmp_path, mapping):
    spark = variant_spark
    table = "delta.`%s/t`" % tmp_path
    spark.sql(
        "CREATE TABLE %s (%s) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = '%s')" % (table, COLUMNS, mapping)
    )
    fill(spark, table)
    assert read(spark, table) == EXPECTED
    detail = spark.sql("DESCRIBE DETAIL " + table).collect()[0]
    assert "variantType" in detail.tableFeatures
    spark.sql("OPTIMIZE " + table)
    assert spark.sql("DESCRIBE DETAIL " + table).collect()[0].numFiles == 1
    assert read(spark, table) == EXPECTED
    if mapping != "none":
        spark.sql("ALTER TABLE %s RENAME COLUMN v TO w" % table)
        spark.sql("ALTER TABLE %s RENAME COLUMN w TO v" % table)
        assert read(spark, table) == EXPECTED
    found = spark.sql(
        "SELECT id, variant_get(v, '$.b[2]', 'string') AS b, try_variant_get(v, '$.a', 'int') AS a FROM %s "
        "WHERE v:a::INT >= 1 ORDER BY id" % table
    )
    assert [tuple(row) for row in found.collect()] == [(1, "x", 1), (6, None, 300)]


def test_files_have_the_marks_that_other_readers_look_for(variant_spark, tmp_path):
    spark = variant_spark
    path = "%s/t" % tmp_path
    table = "delta.`%s`" % path
    spark.sql("CREATE TABLE %s (%s) USING delta" % (table, COLUMNS))
    fill(spark, table)
    added = {}
    for name in sorted(os.listdir(path + "/_delta_log")):
        if name.endswith(".json"):
            for line in open(path + "/_delta_log/" + name):
                action = json.loads(line)
                if "add" in action:
                    added[action["add"]["path"]] = json.loads(action["add"]["stats"])
    assert len(added) == len(VALUES)
    for name, statistics in added.items():
        try:
            text = str(pq.ParquetFile(path + "/" + name).schema)
            assert text.count("(Variant(1))") == 4, text
            for part in ("value", "metadata"):
                assert text.count("required binary field_id=-1 %s;" % part) == 4, text
        except OSError as refused:  # older versions of pyarrow know no groups with this mark
            assert "Variant" in str(refused)
        assert set(statistics["nullCount"]) == {"id", "v", "s", "a", "m"}
        assert "v" not in statistics["minValues"]


def test_dml_and_changes(variant_spark, tmp_path):
    spark = variant_spark
    table = "delta.`%s/t`" % tmp_path
    spark.sql(
        "CREATE TABLE %s (id INT, v VARIANT) USING delta "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'true')" % table
    )
    spark.sql("INSERT INTO %s VALUES (1, parse_json('1')), (2, parse_json('{\"a\": 2}')), (3, NULL), (4, 5::VARIANT)" % table)
    spark.sql("UPDATE %s SET v = parse_json('[1]') WHERE id = 1" % table)
    spark.sql("DELETE FROM %s WHERE variant_get(v, '$.a', 'int') = 2" % table)
    spark.sql(
        "MERGE INTO %s t USING (SELECT 3 AS id, parse_json('7') AS v UNION ALL SELECT 9, parse_json('{}')) s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *" % table
    )
    got = sorted(tuple(r) for r in spark.sql("SELECT id, to_json(v) FROM " + table).collect())
    assert got == [(1, "[1]"), (3, "7"), (4, "5"), (9, "{}")]
    changes = spark.sql(
        "SELECT id, to_json(v), _change_type FROM table_changes_by_path('%s/t', 2) ORDER BY _commit_version, id, 3"
        % tmp_path
    )
    assert [tuple(row) for row in changes.collect()] == [
        (1, "[1]", "update_postimage"),
        (1, "1", "update_preimage"),
        (2, '{"a":2}', "delete"),
        (3, "7", "update_postimage"),
        (3, None, "update_preimage"),
        (9, "{}", "insert"),
    ]


def test_parquet_files(variant_spark, tmp_path):
    spark = variant_spark
    path = "%s/p" % tmp_path
    spark.sql("SELECT 1 AS id, parse_json('{\"a\": [1]}') AS v, array(parse_json('2')) AS a").write.parquet(path)
    df = spark.read.parquet(path)
    assert df.schema["v"].dataType.typeName() == "variant"
    assert [tuple(r) for r in df.selectExpr("id", "to_json(v)", "to_json(a[0])").collect()] == [(1, '{"a":[1]}', "2")]


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd", "lz4", "lz4_raw", "brotli"])
def test_every_codec_is_written_and_read(variant_spark, tmp_path, codec):
    spark = variant_spark
    path = "%s/c" % tmp_path
    df = spark.range(0, 200000, 1, 1).selectExpr("id", "concat('value ', id % 1000, repeat('x', 10)) AS s", "id / 3 AS d")
    df.write.option("compression", codec).parquet(path)
    # pyarrow has no name for Hadoop's LZ4, but reads it.
    wanted = {"none": "UNCOMPRESSED", "lz4": "UNKNOWN", "lz4_raw": "LZ4"}.get(codec, codec.upper())
    files = [f for f in os.listdir(path) if f.endswith(".parquet")]
    for name in files:
        column = pq.ParquetFile(path + "/" + name).metadata.row_group(0).column(1)
        assert column.compression == wanted
    if codec == "lz4":
        assert all(".lz4hadoop." in name for name in files)
    assert sum(pq.read_table(path + "/" + name).num_rows for name in files) == 200000
    back = spark.read.parquet(path)
    assert back.count() == 200000
    assert back.exceptAll(df).count() == 0
