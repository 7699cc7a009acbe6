"""Python functions in queries as a user meets them: what they see, what their results become, and what happens when they
raise, die or do not end. Expected values are Spark's."""

import os
import threading
import time

import pytest
from pyspark.errors import PySparkException, PythonException
from pyspark.sql import Row
from pyspark.sql import functions as F
from pyspark.sql.functions import lit, udtf

pytest.importorskip("pandas")

import pandas as pd  # noqa: E402


def values(frame):
    return sorted(tuple(row) for row in frame.collect())


def test_results_of_another_type_count_as_null_as_pickled_results_do(spark):
    frame = spark.range(1)
    made = {
        "int": [1, 2**40, 1.5, "1", True],
        "double": [1.5, 1, True],
        "string": [True, 1.0, 1e20, [1, None], {"a": 1}],
        "boolean": [True, 1],
        "array<int>": [[1, "x"], (1, 2), 5],
    }
    got = {
        kind: [frame.select(F.udf(lambda _, value=value: value, kind)("id")).head()[0] for value in some]
        for kind, some in made.items()
    }
    assert got == {
        "int": [1, 0, None, None, None],
        "double": [1.5, None, None],
        "string": ["true", "1.0", "1.0E20", "[1, null]", "{a=1}"],
        "boolean": [True, None],
        "array<int>": [[1, None], [1, 2], None],
    }


def test_functions_inside_functions_conditions_and_joins(spark):
    frame = spark.createDataFrame([(1, "a"), (2, "b"), (None, "c")], "i int, s string")
    inc = F.udf(lambda x: None if x is None else x + 1, "int")
    twice = F.pandas_udf(lambda x: x * 2, "double")
    assert values(frame.where("i is not null").select(inc(inc("i")), twice(inc("i")), inc(twice("i").cast("int")))) == [
        (3, 4.0, 3),
        (4, 6.0, 5),
    ]
    # Evaluated for every row, also where CASE leaves the row out.
    with pytest.raises(PythonException, match="ZeroDivisionError"):
        frame.select(F.when(F.col("i") > 5, F.udf(lambda x: 1 // 0, "int")("i"))).collect()
    other = spark.createDataFrame([(2, "x"), (3, "y")], "k int, t string")
    pairs = F.udf(lambda a, b: a is not None and a + 1 == b, "boolean")
    assert values(frame.join(other, pairs(frame.i, other.k)).select("i", "k")) == [(1, 2), (2, 3)]
    with pytest.raises(PySparkException) as refused:
        frame.join(other, pairs(frame.i, other.k), "left").collect()
    assert refused.value.getCondition() == "UNSUPPORTED_FEATURE.PYTHON_UDF_IN_ON_CLAUSE"


def test_batches_have_the_size_that_is_set(spark):
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 3000)
    size = F.pandas_udf(lambda s: pd.Series([len(s)] * len(s)), "int")
    assert values(spark.range(7000).select(size("id").alias("n")).groupBy("n").count()) == [(1000, 1000), (3000, 6000)]
    spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


def test_a_worker_that_dies_fails_its_query_alone(spark):
    with pytest.raises(PySparkException, match="Python worker exited unexpectedly"):
        spark.range(3).select(F.udf(lambda x: os.kill(os.getpid(), 9), "long")("id")).collect()
    assert values(spark.range(2).select(F.udf(lambda x: x + 1, "long")("id"))) == [(1,), (2,)]


def test_a_function_that_hangs_is_interrupted(spark):
    def hang(x):
        time.sleep(600)
        return x

    ended = []

    def run():
        try:
            spark.range(3).select(F.udf(hang, "long")("id")).collect()
        except PySparkException as error:
            ended.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(2)
    began = time.monotonic()
    spark.interruptAll()
    thread.join(10)
    assert ended and time.monotonic() - began < 5


def test_a_limit_ends_a_function_that_gives_rows_for_ever(spark):
    def forever(frames):
        while True:
            yield pd.DataFrame({"i": range(1000)})

    assert len(spark.range(3).mapInPandas(forever, "i long").limit(2500).collect()) == 2500


def test_groups_with_null_keys_and_groups_over_several_batches(spark):
    frame = spark.range(30000).selectExpr("if(id % 3 = 0, null, id % 3) as g", "id")
    counted = frame.groupBy("g").applyInPandas(
        lambda f: pd.DataFrame({"n": [len(f)], "s": [int(f.id.sum())], "d": [str(f.g.dtype)]}), "n long, s long, d string"
    )
    assert sorted((row.n, row.s) for row in counted.collect()) == [
        (10000, 149985000),
        (10000, 149995000),
        (10000, 150005000),
    ]
    other = spark.createDataFrame([(None, "none"), (7, "seven")], "g long, t string")
    joined = frame.groupBy("g").cogroup(other.groupBy("g")).applyInPandas(
        lambda a, b: pd.DataFrame({"a": [len(a)], "b": [len(b)]}), "a long, b long"
    )
    assert values(joined) == [(0, 1), (10000, 0), (10000, 0), (10000, 1)]


def test_table_functions(spark):
    @udtf(returnType="n int, t string")
    class Repeat:
        def eval(self, n: int, t: str = "x"):
            for i in range(n or 0):
                yield i, t * i

    assert values(Repeat(lit(2), lit("ab"))) == [(0, ""), (1, "ab")]
    spark.udtf.register("repeat_text", Repeat)
    assert values(spark.sql("SELECT v.i, c.n FROM VALUES (1), (2), (0) AS v(i), LATERAL repeat_text(v.i) AS c")) == [
        (1, 0),
        (2, 0),
        (2, 1),
    ]

    @udtf(returnType="k string, total int")
    class Total:
        def __init__(self):
            self.total, self.k = 0, None

        def eval(self, row: Row):
            self.total += row.i
            self.k = row.k

        def terminate(self):
            yield self.k, self.total

    spark.udtf.register("total_of", Total)
    spark.sql("SELECT * FROM VALUES (1, 'a'), (2, 'a'), (5, 'b') AS t(i, k)").createOrReplaceTempView("t")
    assert values(spark.sql("SELECT * FROM total_of(TABLE(t) PARTITION BY k)")) == [("a", 3), ("b", 5)]


def test_state_of_a_function_survives_a_restart(spark, folder):
    def track(key, frames, state):
        count = state.get[0] if state.exists else 0
        count += sum(len(frame) for frame in frames)
        if count >= 3:
            state.remove()
        else:
            state.update((count,))
        yield pd.DataFrame({"k": [key[0]], "n": [count]})

    os.makedirs(folder + "/in")

    def run(number, text):
        with open(folder + "/in/%d.json" % number, "w") as file:
            file.write("".join('{"k": "%s"}\n' % k for k in text))
        stream = spark.readStream.schema("k string").json(folder + "/in")
        tracked = stream.groupBy("k").applyInPandasWithState(track, "k string, n long", "n long", "update", "NoTimeout")
        query = (
            tracked.writeStream.foreachBatch(lambda df, _: df.write.mode("append").json(folder + "/out"))
            .outputMode("update")
            .option("checkpointLocation", folder + "/cp")
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(60)

    for number, text in enumerate(["ab", "a", "a", "a"]):
        run(number, text)
    found = spark.read.schema("k string, n long").json(folder + "/out")
    assert values(found) == [("a", 1), ("a", 1), ("a", 2), ("a", 3), ("b", 1)]
