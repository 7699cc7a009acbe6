"""Streams on Delta tables beyond what the reference prints: upserts by key, order of event times, rescued Parquet columns."""

import json
import os
import time

import pyarrow
import pyarrow.parquet
import pytest


def run(writer, path):
    query = writer.trigger(availableNow=True).start(path)
    query.awaitTermination()
    return query


def rows(frame):
    return sorted(tuple(row) for row in frame.collect())


def feed(spark, folder, values, schema="id INT, day INT, v STRING"):
    """Appends rows to the table that the streams read."""
    spark.createDataFrame(values, schema).coalesce(1).write.format("delta").mode("append").save(folder + "/in")


def upsert(spark, folder, mode="append", **options):
    return run(
        spark.readStream.format("delta").load(folder + "/in").writeStream.format("delta").outputMode(mode).options(**options)
        .option("checkpointLocation", folder + "/cp"), folder + "/out")


@pytest.mark.parametrize("mode", ["append", "update"])
@pytest.mark.parametrize("vectors", ["true", "false"])
def test_upserts_keep_the_newest_row_of_a_key(spark, folder, mode, vectors):
    spark.conf.set("spark.databricks.delta.properties.defaults.enableDeletionVectors", vectors)
    options = {"upsertKeys": "id", "sequenceBy": "day"}
    feed(spark, folder, [(1, 1, "a"), (1, 3, "c"), (1, 2, "b"), (2, 1, "x")])
    upsert(spark, folder, mode, **options)
    assert rows(spark.read.format("delta").load(folder + "/out")) == [(1, 3, "c"), (2, 1, "x")]
    # Late rows do not replace newer ones; new keys are inserted.
    feed(spark, folder, [(1, 2, "late"), (2, 2, "y"), (3, 1, "z")])
    upsert(spark, folder, mode, **options)
    assert rows(spark.read.format("delta").load(folder + "/out")) == [(1, 3, "c"), (2, 2, "y"), (3, 1, "z")]
    history = spark.sql("DESCRIBE HISTORY delta.`%s/out`" % folder).collect()
    assert [h.operation for h in history][0] == "MERGE"
    # The batch's transaction is in the commit of the merge.
    newest = max(name for name in os.listdir(folder + "/out/_delta_log") if name.endswith(".json"))
    assert '"txn"' in open(folder + "/out/_delta_log/" + newest).read()
    # Nothing new: nothing is committed.
    upsert(spark, folder, mode, **options)
    assert len(spark.sql("DESCRIBE HISTORY delta.`%s/out`" % folder).collect()) == len(history)


def test_an_upsert_that_was_committed_is_not_run_again(spark, folder):
    options = {"upsertKeys": "id, day"}
    feed(spark, folder, [(1, 1, "a"), (1, 2, "b")])
    upsert(spark, folder, **options)
    feed(spark, folder, [(1, 1, "A"), (2, 1, "c")])
    upsert(spark, folder, **options)
    versions = len(os.listdir(folder + "/out/_delta_log"))
    newest = max(int(name) for name in os.listdir(folder + "/cp/commits") if name.isdigit())
    os.remove("%s/cp/commits/%d" % (folder, newest))
    upsert(spark, folder, **options)
    assert len(os.listdir(folder + "/out/_delta_log")) == versions
    assert rows(spark.read.format("delta").load(folder + "/out")) == [(1, 1, "A"), (1, 2, "b"), (2, 1, "c")]


@pytest.mark.parametrize("values, options, condition", [
    ([(1, 1, "a"), (None, 1, "b")], {"upsertKeys": "id", "sequenceBy": "day"}, "FLEUVE_UPSERT_NULL_KEY"),
    ([(1, 1, "a"), (1, None, "b")], {"upsertKeys": "id", "sequenceBy": "day"}, "FLEUVE_UPSERT_NULL_SEQUENCE"),
    ([(1, 1, "a"), (1, 2, "b")], {"upsertKeys": "id"}, "FLEUVE_UPSERT_SEQUENCE_REQUIRED"),
    ([(1, 1, "a")], {"upsertKeys": "missing"}, "UNRESOLVED_COLUMN"),
    ([(1, 1, "a")], {"sequenceBy": "day"}, "FLEUVE_UPSERT_OPTIONS"),
    ([(1, 1, "a")], {"upsertKeys": "id,,day"}, "FLEUVE_UPSERT_OPTIONS"),
])
def test_what_upserts_refuse(spark, folder, values, options, condition):
    feed(spark, folder, values)
    with pytest.raises(Exception) as failed:
        upsert(spark, folder, **options)
    assert condition in str(failed.value)
    assert not os.path.exists(folder + "/out/_delta_log")


def test_upserts_take_new_columns_where_asked_to(spark, folder):
    options = {"upsertKeys": "id"}
    feed(spark, folder, [(1, 1, "a")])
    upsert(spark, folder, **options)
    spark.sql("ALTER TABLE delta.`%s/in` ADD COLUMN w INT" % folder)
    feed(spark, folder, [(1, 2, "b", 7), (2, 2, "c", 8)], "id INT, day INT, v STRING, w INT")
    with pytest.raises(Exception) as failed:
        upsert(spark, folder, **options)
    assert "DELTA_METADATA_MISMATCH" in str(failed.value)
    upsert(spark, folder, mergeSchema="true", **options)
    assert rows(spark.read.format("delta").load(folder + "/out")) == [(1, 2, "b", 7), (2, 2, "c", 8)]


def change_feed(spark, folder):
    return (spark.readStream.format("delta").option("readChangeFeed", "true").option("startingVersion", 0).option("maxFilesPerTrigger", 1)
            .load(folder + "/in").drop("_commit_timestamp").writeStream.format("delta").option("checkpointLocation", folder + "/cp"))


def upserts(spark, folder):
    return (spark.readStream.format("delta").option("skipChangeCommits", "true").option("maxFilesPerTrigger", 1).load(folder + "/in")
            .writeStream.format("delta").option("upsertKeys", "id").option("sequenceBy", "day").option("checkpointLocation", folder + "/cp"))


@pytest.mark.parametrize("pipeline", [change_feed, upserts])
def test_killed_and_started_again(start_server, folder, pipeline):
    server = start_server()
    spark = server.session()
    spark.sql("CREATE TABLE delta.`%s/in` (id INT, day INT, v STRING) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')" % folder)
    for day in range(12):
        spark.sql("INSERT INTO delta.`%s/in` SELECT CAST(id AS INT), %d, 'd%d' FROM range(%d)" % (folder, day, day, day + 3))
    spark.sql("UPDATE delta.`%s/in` SET v = 'changed' WHERE day = 3" % folder)
    feed = spark.read.format("delta").option("readChangeFeed", True).option("startingVersion", 0).load(folder + "/in").drop("_commit_timestamp")
    expected = rows(feed)
    newest = rows(spark.sql("SELECT id, max(day), concat('d', max(day)) FROM delta.`%s/in` GROUP BY id" % folder))
    for kill in range(4):
        query = pipeline(server.session(), folder).start(folder + "/out")
        time.sleep(0.15 + 0.1 * kill)
        server.kill()
        server = start_server()
    spark = server.session()
    run(pipeline(spark, folder), folder + "/out")
    got = rows(spark.read.format("delta").load(folder + "/out"))
    assert got == (expected if pipeline is change_feed else newest)
    # Each batch is in the table once.
    batches = []
    for name in sorted(os.listdir(folder + "/out/_delta_log")):
        if name.endswith(".json"):
            for line in open(folder + "/out/_delta_log/" + name):
                action = json.loads(line)
                if "txn" in action:
                    batches.append(action["txn"]["version"])
    assert batches == list(range(len(batches)))


def test_rescued_columns_of_parquet_files(spark, folder):
    os.makedirs(folder + "/p")
    pyarrow.parquet.write_table(pyarrow.table({"id": [1, 2], "v": ["a", "b"]}), folder + "/p/1.parquet")
    pyarrow.parquet.write_table(pyarrow.table({"id": ["x", None], "more": [7, None]}), folder + "/p/2.parquet")
    reader = (spark.readStream.format("cloudFiles").option("cloudFiles.format", "parquet").schema("id BIGINT, v STRING")
              .option("rescuedDataColumn", "_rescued_data").load(folder + "/p").selectExpr("*", "_metadata.file_name AS f"))
    run(reader.writeStream.format("delta").option("checkpointLocation", folder + "/cp"), folder + "/out")
    path = "file:" + folder + "/p/2.parquet"
    assert sorted(map(str, spark.read.format("delta").load(folder + "/out").collect())) == sorted([
        "Row(id=1, v='a', _rescued_data=None, f='1.parquet')",
        "Row(id=2, v='b', _rescued_data=None, f='1.parquet')",
        "Row(id=None, v=None, _rescued_data='{\"id\":\"x\",\"more\":7,\"_file_path\":\"%s\"}', f='2.parquet')" % path,
        "Row(id=None, v=None, _rescued_data=None, f='2.parquet')",
    ])


def test_rescued_files_have_the_columns_of_their_folders(spark, folder):
    """The folders appear after the stream has begun: `day` moves from the files to their names."""
    os.makedirs(folder + "/p")
    reader = (spark.readStream.format("cloudFiles").option("cloudFiles.format", "parquet").schema("id BIGINT, day INT")
              .option("rescuedDataColumn", "_rescued_data").load(folder + "/p"))
    query = reader.writeStream.format("delta").option("checkpointLocation", folder + "/cp").start(folder + "/out")
    query.processAllAvailable()
    os.makedirs(folder + "/w/day=5")
    os.makedirs(folder + "/w/day=6")
    pyarrow.parquet.write_table(pyarrow.table({"id": [1]}), folder + "/w/day=5/1.parquet")
    pyarrow.parquet.write_table(pyarrow.table({"id": ["x"], "more": [7]}), folder + "/w/day=6/2.parquet")
    pyarrow.parquet.write_table(pyarrow.table({"id": [3], "day": ["six"]}), folder + "/w/day=6/3.parquet")
    for day in ("/day=5", "/day=6"):
        os.rename(folder + "/w" + day, folder + "/p" + day)
    query.processAllAvailable()
    query.stop()
    rescued = '{"id":"x","more":7,"_file_path":"file:%s/p/day=6/2.parquet"}' % folder
    assert sorted(str(tuple(row)) for row in spark.read.format("delta").load(folder + "/out").collect()) == sorted(
        map(str, [(1, 5, None), (None, 6, rescued), (3, 6, None)]))


def test_types_widen_where_asked_to(spark, folder):
    os.makedirs(folder + "/p")
    pyarrow.parquet.write_table(pyarrow.table({"id": pyarrow.array([1], pyarrow.int32())}), folder + "/p/1.parquet")
    spark.sql("CREATE TABLE delta.`%s/out` (id INT, _rescued_data STRING) TBLPROPERTIES ('delta.enableTypeWidening' = 'true')" % folder)

    def load():
        stream = (spark.readStream.format("cloudFiles").option("cloudFiles.format", "parquet")
                  .option("cloudFiles.schemaLocation", folder + "/schema")
                  .option("cloudFiles.schemaEvolutionMode", "addNewColumnsWithTypeWidening").load(folder + "/p"))
        return run(stream.writeStream.format("delta").option("mergeSchema", "true").option("checkpointLocation", folder + "/cp"),
                   folder + "/out")

    load()
    pyarrow.parquet.write_table(pyarrow.table({"id": pyarrow.array([1 << 40], pyarrow.int64())}), folder + "/p/2.parquet")
    with pytest.raises(Exception) as stopped:
        load()
    assert "NEW_TYPE_FOR_FIELDS_IN_FILE" in str(stopped.value)
    load()
    assert [row.id for row in spark.read.format("delta").load(folder + "/out").orderBy("id").collect()] == [1, 1 << 40]


def test_nothing_is_written_once_the_query_has_ended(spark, folder):
    # The tenth version is the last of the run: its checkpoint is written beside the commit.
    spark.range(11).repartition(11).write.parquet(folder + "/in")
    stream = spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 1).parquet(folder + "/in")
    for n in range(5):
        out = "%s/out%d" % (folder, n)
        writer = stream.writeStream.format("delta").option("checkpointLocation", out + "-checkpoint")
        writer.trigger(availableNow=True).start(out).awaitTermination()
        assert os.path.exists(out + "/_delta_log/00000000000000000010.checkpoint.parquet")
        assert os.path.exists(out + "/_delta_log/_last_checkpoint")
