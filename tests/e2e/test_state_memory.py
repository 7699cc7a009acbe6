"""State that outgrows its memory: the query ends by name, the server goes on, and the query continues with more."""

import json
import os

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

LIMIT = "fleuve.state.memoryLimit"


def write(root, number, rows):
    os.makedirs(root + "/in", exist_ok=True)
    hidden = root + "/in/.%d" % number
    with open(hidden, "w") as f:
        f.writelines(json.dumps({"k": "key %d" % row, "n": 1}) + "\n" for row in rows)
    os.rename(hidden, root + "/in/%05d.json" % number)


def count(spark, root, limit):
    spark.conf.set(LIMIT, limit)
    stream = spark.readStream.schema("k string, n long").option("maxFilesPerTrigger", 1).json(root + "/in")
    writer = stream.groupBy("k").agg(F.sum("n").alias("n")).writeStream.outputMode("complete").format("delta")
    query = writer.option("checkpointLocation", root + "/cp").trigger(availableNow=True).start(root + "/out")
    query.awaitTermination(60)


def result(spark, root):
    return spark.read.format("delta").load(root + "/out").agg(F.count("*"), F.sum("n")).first()


def test_a_state_beyond_its_limit_ends_the_query_by_name(server, folder):
    spark = server.session()
    root = folder + "/limit"
    write(root, 0, range(100))
    count(spark, root, "1m")
    write(root, 1, range(50, 40000))
    with pytest.raises(PySparkException) as e:
        count(spark, root, "1m")
    for part in ["FLEUVE_STATE_MEMORY_LIMIT", LIMIT, "stateStoreSave"]:
        assert part in str(e.value)
    # Nothing of the batch is in the sink, the server answers, and more memory lets the query go on where it was.
    assert tuple(result(spark, root)) == (100, 100)
    count(spark, root, "64m")
    assert tuple(result(spark, root)) == (40000, 40050)
    # A state that is too large already is noticed when it is read.
    write(root, 2, [0])
    with pytest.raises(PySparkException, match="FLEUVE_STATE_MEMORY_LIMIT"):
        count(spark, root, "1m")
    count(spark, root, "0b")
    assert tuple(result(spark, root)) == (40000, 40051)


def test_the_limit_is_a_size(server):
    spark = server.session()
    with pytest.raises(PySparkException, match="INVALID_CONF_VALUE"):
        spark.conf.set(LIMIT, "much")


PROVIDER = "spark.sql.streaming.stateStore.providerClass"
SPILLING = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def test_rows_beyond_the_limit_lie_on_disk(server, folder):
    spark = server.session()
    root = folder + "/disk"
    write(root, 0, range(30000))
    with pytest.raises(PySparkException, match="RocksDBStateStoreProvider"):
        count(spark, root, "1m")
    # The same checkpoint, with the other provider, in the same memory.
    spark.conf.set(PROVIDER, SPILLING)
    count(spark, root, "1m")
    assert tuple(result(spark, root)) == (30000, 30000)
    for number in range(1, 25):
        write(root, number, range(number * 1000, number * 1000 + 2500))
    count(spark, root, "1m")
    assert tuple(result(spark, root)) == (30000, 30000 + 24 * 2500)
    # And back, in memory alone.
    spark.conf.unset(PROVIDER)
    write(root, 25, [0])
    count(spark, root, "0b")
    assert tuple(result(spark, root)) == (30000, 30001 + 24 * 2500)


def test_another_provider_is_refused_by_name(server, folder):
    spark = server.session()
    root = folder + "/other"
    write(root, 0, [1])
    spark.conf.set(PROVIDER, "com.example.OtherStateStoreProvider")
    with pytest.raises(PySparkException, match="com.example.OtherStateStoreProvider"):
        count(spark, root, "0b")
