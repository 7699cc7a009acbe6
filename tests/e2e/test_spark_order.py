"""Order and equality of NaN, -0.0 and NULL inside arrays and structs; recursion that a LIMIT ends; names that mind case."""

import math

import pytest
from pyspark.errors import PySparkException


def shown(value):
    if isinstance(value, float):
        return "nan" if math.isnan(value) else repr(value)
    if isinstance(value, (list, tuple)):
        return [shown(item) for item in value]
    return value


@pytest.mark.parametrize(
    "sql, rows",
    [
        ("SELECT c FROM VALUES (1D), (-0.0D), (double('nan')), (0.0D), (NULL) t(c) ORDER BY c",
         [[None], ["-0.0"], ["0.0"], ["1.0"], ["nan"]]),
        ("SELECT c FROM VALUES (array(1, NULL)), (array(1, 2)), (array(1)), (NULL) t(c) ORDER BY c DESC",
         [[[1, 2]], [[1, None]], [[1]], [None]]),
        ("SELECT c.a FROM VALUES (named_struct('a', 2)), (named_struct('a', NULL)) t(c) ORDER BY c", [[None], [2]]),
        ("SELECT array(1, NULL) < array(1, 2), struct(double('nan')) > struct(1D), array(-0.0D) = array(0.0D)",
         [[True, True, True]]),
        ("SELECT c, count(*) FROM VALUES (-0.0D), (0.0D) t(c) GROUP BY c", [["0.0", 2]]),
        ("SELECT DISTINCT c FROM VALUES (array(-0.0D)), (array(0.0D)) t(c)", [[["0.0"]]]),
        ("SELECT x FROM (SELECT x, row_number() OVER (ORDER BY y) r FROM VALUES (1, array(2)), (2, array(NULL)) t(x, y)) "
         "ORDER BY r", [[2], [1]]),
        ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i * 2 FROM n LIMIT 3", [[2], [4], [6]]),
        # A recursion inside another one sees the outer one's last round, in its step and in its anchor.
        ("WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL (WITH RECURSIVE s(m) AS (SELECT 1 UNION ALL SELECT m + 1 FROM s, t "
         "WHERE m <= t.n) SELECT CAST(t.n + c.k AS INT) FROM t, (SELECT count(*) k FROM s) c WHERE t.n < 5)) "
         "SELECT * FROM t", [[1], [3], [7]]),
        ("WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL (WITH RECURSIVE s(m) AS (SELECT n FROM t UNION ALL SELECT m + 1 "
         "FROM s WHERE m < 3) SELECT CAST((SELECT max(m) FROM s) + 1 AS INT) FROM t WHERE n < 4)) SELECT * FROM t",
         [[1], [4]]),
    ],
)
def test_rows_are_those_of_spark(sql, rows, spark):
    assert [shown(list(row)) for row in spark.sql(sql).collect()] == rows


def test_recursion_without_end_fails_when_it_runs(spark):
    frame = spark.sql("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n")
    assert frame.schema.simpleString() == "struct<i:int>"
    with pytest.raises(PySparkException) as failure:
        frame.collect()
    assert failure.value.getCondition() == "RECURSION_LEVEL_LIMIT_EXCEEDED"


def test_names_of_views_mind_case_where_the_session_does(spark):
    spark.range(1).createOrReplaceTempView("some_view")
    assert spark.table("SOME_VIEW").count() == 1
    spark.conf.set("spark.sql.caseSensitive", "true")
    assert spark.table("some_view").count() == 1
    with pytest.raises(PySparkException) as failure:
        spark.table("SOME_VIEW").count()
    assert failure.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"


def test_old_files_without_a_writer_are_read_by_the_mode_asked_for(spark, folder):
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    path = folder + "/old.parquet"
    days = pyarrow.array([-719164, 0], pyarrow.date32())
    pyarrow.parquet.write_table(pyarrow.table({"d": days, "a": pyarrow.array([[-719164], []], pyarrow.list_(days.type))}), path)

    def read(mode):
        frame = spark.read.option("datetimeRebaseMode", mode).parquet(path).selectExpr("string(d)", "string(a)")
        return sorted(tuple(row) for row in frame.collect())

    assert read("LEGACY")[0] == ("0001-01-01", "[0001-01-01]")
    assert read("CORRECTED")[0] == ("0000-12-30", "[0000-12-30]")
    with pytest.raises(PySparkException) as failure:
        read("EXCEPTION")
    assert failure.value.getCondition() == "INCONSISTENT_BEHAVIOR_CROSS_VERSION.READ_ANCIENT_DATETIME"
