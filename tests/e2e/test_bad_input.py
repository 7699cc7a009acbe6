"""Bad input gets a clear error that names file, line or option; nothing is lost; the query goes on once it is mended."""

import glob
import gzip
import json
import os
import shutil
import subprocess

import pytest
from pyspark.errors import PySparkException


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".tmp", "w") as f:
        f.write(text)
    os.rename(path + ".tmp", path)


def stream(spark, folder, form="json", schema="a INT", **options):
    reader = spark.readStream.format(form).schema(schema)
    for key, value in options.items():
        reader = reader.option(key, value)
    return (
        reader.load(folder + "/in")
        .writeStream.format("delta")
        .option("checkpointLocation", folder + "/cp")
        .trigger(availableNow=True)
        .start(folder + "/out")
    )


def rows(spark, folder):
    return sorted(r.a for r in spark.read.format("delta").load(folder + "/out").collect())


def failure(action):
    with pytest.raises(PySparkException) as caught:
        action()
    return caught.value


def test_malformed_json_by_mode(spark, folder):
    write(folder + "/in/1.json", '{"a":1}\nnot json\n{"a":3}\n')
    path = folder + "/in"
    read = lambda mode: [r.a for r in spark.read.schema("a INT").option("mode", mode).json(path).collect()]
    assert read("PERMISSIVE") == [1, None, 3]
    assert read("DROPMALFORMED") == [1, 3]
    error = failure(lambda: read("FAILFAST"))
    assert "1.json" in str(error)


def test_a_failed_batch_is_run_again_once_the_file_is_mended(spark, folder):
    write(folder + "/in/1.json", '{"a":1}\n')
    stream(spark, folder, mode="FAILFAST").awaitTermination()
    write(folder + "/in/2.json", '{"a":2}\n{"a":\n')
    error = failure(lambda: stream(spark, folder, mode="FAILFAST").awaitTermination())
    assert "2.json" in str(error)
    write(folder + "/in/2.json", '{"a":2}\n{"a":3}\n')
    stream(spark, folder, mode="FAILFAST").awaitTermination()
    assert rows(spark, folder) == [1, 2, 3]


def test_truncated_gzip_names_the_file(spark, folder):
    os.makedirs(folder + "/in")
    whole = gzip.compress(b"".join(b'{"a":%d}\n' % i for i in range(10000)))
    with open(folder + "/in/x.json.gz", "wb") as f:
        f.write(whole[: len(whole) // 2])
    error = failure(lambda: spark.read.schema("a INT").json(folder + "/in").collect())
    assert "x.json.gz" in str(error)


def test_a_file_that_is_no_parquet_names_the_file(spark, folder):
    write(folder + "/in/bad.parquet", "this is no parquet file at all")
    error = failure(lambda: spark.read.schema("a INT").parquet(folder + "/in").collect())
    assert "bad.parquet" in str(error)


def test_corrupt_checkpoint_file_is_named_and_the_copy_mends_it(spark, folder):
    write(folder + "/in/1.json", '{"a":1}\n')
    stream(spark, folder).awaitTermination()
    offsets = folder + "/cp/offsets/0"
    shutil.copy(offsets, folder + "/kept")
    write(offsets, "v1\n{nonsense}\n{}\n")
    write(folder + "/in/2.json", '{"a":2}\n')
    error = failure(lambda: stream(spark, folder).awaitTermination())
    assert "offsets/0" in str(error)
    shutil.copy(folder + "/kept", offsets)
    stream(spark, folder).awaitTermination()
    assert rows(spark, folder) == [1, 2]


def test_corrupt_log_file_is_named(spark, folder):
    spark.range(1).write.format("delta").save(folder + "/t")
    write(folder + "/t/_delta_log/%020d.json" % 1, '{"add":{"path":"x"\n')
    session = spark
    error = failure(lambda: session.read.format("delta").load(folder + "/t").collect())
    assert "%020d.json" % 1 in str(error)
    os.remove(folder + "/t/_delta_log/%020d.json" % 1)
    assert session.read.format("delta").load(folder + "/t").count() == 1


def test_data_file_that_vanished_is_named(spark, folder):
    spark.range(5).write.format("delta").save(folder + "/t")
    for name in glob.glob(folder + "/t/*.parquet"):
        os.remove(name)
    error = failure(lambda: spark.read.format("delta").load(folder + "/t").collect())
    assert ".parquet" in str(error)


def test_unknown_option_value_names_the_option(spark, folder):
    write(folder + "/in/1.json", '{"a":1}\n')
    error = failure(lambda: stream(spark, folder, maxFilesPerTrigger="many").awaitTermination())
    assert "maxFilesPerTrigger" in str(error)


def test_second_process_on_a_checkpoint_is_refused_by_name(start_server, folder):
    write(folder + "/in/1.json", '{"a":1}\n')
    one, two = start_server(where=folder), start_server(where=folder)
    start = lambda s: (
        s.readStream.schema("a INT").json(folder + "/in").writeStream.format("delta")
        .option("checkpointLocation", folder + "/cp").start(folder + "/out")
    )
    first = start(one.session())
    first.processAllAvailable()
    error = failure(lambda: start(two.session()).processAllAvailable())
    assert str(one.pid) in str(error)
    first.stop()
    again = start(two.session())
    again.processAllAvailable()
    again.stop()


def test_second_start_in_one_process_stops_the_first(spark, folder):
    write(folder + "/in/1.json", '{"a":1}\n')
    start = lambda: (
        spark.readStream.schema("a INT").json(folder + "/in").writeStream.format("delta")
        .option("checkpointLocation", folder + "/cp").start(folder + "/out")
    )
    first = start()
    first.processAllAvailable()
    second = start()
    second.processAllAvailable()
    assert not first.isActive and second.isActive
    assert first.id == second.id and first.runId != second.runId
    second.stop()


@pytest.mark.skipif(not os.path.exists("/usr/bin/mount") or os.geteuid() != 0, reason="needs root to mount a small disk")
def test_full_disk_loses_nothing(spark, folder):
    disk = folder + "/disk"
    os.makedirs(disk)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], capture_output=True).returncode != 0:
        pytest.skip("cannot mount a small disk here")
    try:
        write(folder + "/in/1.json", "".join('{"a":%d}\n' % i for i in range(100)))
        start = lambda: (
            spark.readStream.schema("a INT").json(folder + "/in").writeStream.format("delta")
            .option("checkpointLocation", folder + "/cp").trigger(availableNow=True).start(disk + "/out")
        )
        start().awaitTermination()
        ballast = os.open(disk + "/ballast", os.O_WRONLY | os.O_CREAT)
        try:
            while True:
                os.write(ballast, os.urandom(1024))
        except OSError:
            os.close(ballast)
        write(folder + "/in/2.json", "".join('{"a":%d}\n' % i for i in range(100, 5000)))
        error = failure(lambda: start().awaitTermination())
        assert "space" in str(error).lower() or "full" in str(error).lower()
        os.remove(disk + "/ballast")
        start().awaitTermination()
        got = sorted(r.a for r in spark.read.format("delta").load(disk + "/out").collect())
        assert got == list(range(5000))
    finally:
        subprocess.run(["umount", "-l", disk])


def test_folder_without_permission_is_named(spark, folder):
    if os.geteuid() == 0:
        # Root may write anywhere; a file in the place of a folder is the same kind of refusal.
        write(folder + "/out", "a file, no folder")
        write(folder + "/in/1.json", '{"a":1}\n')
        error = failure(lambda: stream(spark, folder).awaitTermination())
        assert folder + "/out" in str(error)
        os.remove(folder + "/out")
        stream(spark, folder).awaitTermination()
        assert rows(spark, folder) == [1]


def test_bytes_that_are_no_text_do_not_reach_a_table(spark, folder):
    os.makedirs(folder + "/in")
    with open(folder + "/in/1.csv", "wb") as f:
        f.write(b"1,ok\n2,caf\xe9\n")
    stream(spark, folder, "csv", "a INT, name STRING").awaitTermination()
    table = spark.read.format("delta").load(folder + "/out")
    assert sorted(map(tuple, table.collect())) == [(1, "ok"), (2, "caf\ufffd")]
    for log in glob.glob(folder + "/out/_delta_log/*.json"):
        open(log, encoding="utf-8").read()
    # What Spark's own cast would bring into a file is refused where it would be written.
    bad = spark.sql("SELECT 1 AS a, cast(X'FF41' AS STRING) AS name")
    error = failure(lambda: bad.write.format("delta").mode("append").save(folder + "/out"))
    assert error.getCondition() == "INVALID_UTF8_STRING"
    assert table.count() == 2
    made = "SELECT id, %s AS v FROM (SELECT id, cast(unhex(if(id = 1, 'FF41', '6F6B')) AS STRING) AS s FROM range(3))"
    for value in ("array('a', s)", "named_struct('n', 1, 's', s)", "array(named_struct('s', array(s)))"):
        frame = spark.sql(made % value)
        error = failure(lambda: frame.write.mode("overwrite").parquet(folder + "/nested"))
        assert error.getCondition() == "INVALID_UTF8_STRING", value
        frame.where("id <> 1").write.mode("overwrite").parquet(folder + "/nested")
        assert spark.read.parquet(folder + "/nested").count() == 2, value


def test_partition_values_are_told_from_null(spark, folder):
    data = [("\x01", 0), (None, 1), ("-", 2), ("1:-", 3)]
    spark.createDataFrame(data, "k STRING, a INT").write.format("delta").partitionBy("k").save(folder + "/out")
    table = spark.read.format("delta").load(folder + "/out")
    assert sorted(map(tuple, table.select("k", "a").collect()), key=str) == sorted(data, key=str)
    spark.sql("DELETE FROM delta.`%s/out` WHERE k IS NULL" % folder)
    assert rows(spark, folder) == [0, 2, 3]


def test_a_lost_source_log_is_no_reason_to_read_all_again(spark, folder):
    for i in range(3):
        write(folder + "/in/%d.json" % i, '{"a": %d}\n' % i)
        stream(spark, folder).awaitTermination()
    shutil.rmtree(folder + "/cp/sources")
    write(folder + "/in/9.json", '{"a": 9}\n')
    error = failure(lambda: stream(spark, folder).awaitTermination())
    assert "batch 2 doesn't exist" in str(error)
    assert rows(spark, folder) == [0, 1, 2]
