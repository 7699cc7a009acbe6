"""foreachBatch and foreach as a user meets them: what the function may do in the session, and what happens when it dies,
hangs, prints, raises, or is killed between its return and the end of the batch."""

import json
import os
import threading
import time

import pytest
from pyspark.errors import PySparkException

from conftest import Server
from test_kill import check_checkpoint, write_rows


def stream_of(spark, root, files=None):
    reader = spark.readStream.schema("id long")
    if files:
        reader = reader.option("maxFilesPerTrigger", files)
    return reader.json(root + "/in")


def failure_of(query, seconds=60):
    with pytest.raises(PySparkException) as failed:
        query.awaitTermination(seconds)
    return str(failed.value)


def test_the_batch_is_a_frame_of_the_session(spark, folder):
    root = folder + "/data"
    write_rows(root + "/in", 0)
    write_rows(root + "/in", 1)
    spark.createDataFrame([(0, "zero"), (101, "hundred and one")], "id long, name string").createOrReplaceTempView("names")
    seen = folder + "/seen"

    def work(df, batch_id):
        import json

        df.persist()
        counts = [df.count(), df.count(), df.where("id >= 100").count(), df.limit(2).count()]
        df.unpersist()
        joined = df.join(df.sparkSession.table("names"), "id").orderBy("id").collect()
        df.createOrReplaceTempView("batch_rows")
        top = df.sparkSession.sql("select max(id) as top from batch_rows").head().top
        with open(seen, "a") as f:
            f.write(json.dumps([batch_id, df.isStreaming, counts, [r.name for r in joined], top, df.schema.simpleString()]) + "\n")

    query = stream_of(spark, root, 1).writeStream.foreachBatch(work).trigger(availableNow=True).start()
    assert query.awaitTermination(60)
    lines = sorted(json.loads(line) for line in open(seen))
    assert lines == [
        [0, False, [3, 3, 0, 2], ["zero"], 2, "struct<id:bigint>"],
        [1, False, [3, 3, 3, 2], ["hundred and one"], 102, "struct<id:bigint>"],
    ]
    assert [p.numInputRows for p in query.recentProgress if p.batchId < 2][:2] == [3, 3]
    assert query.recentProgress[0].sink.description == "ForeachBatchSink"
    assert query.recentProgress[0].sink.numOutputRows == -1


def test_the_rows_of_a_batch_do_not_change(spark, folder):
    root = folder + "/data"
    write_rows(root + "/in", 0)
    seen = folder + "/seen"

    def work(df, batch_id):
        import json
        import os
        import shutil

        first = [[r.id, r.u] for r in df.orderBy("id").collect()]
        shutil.rmtree(root + "/in")  # what was read need not be there any more
        os.makedirs(root + "/in")
        second = [[r.id, r.u] for r in df.orderBy("id").collect()]
        json.dump([first, second], open(seen, "w"))

    frame = stream_of(spark, root).selectExpr("id", "uuid() as u")
    assert frame.writeStream.foreachBatch(work).trigger(availableNow=True).start().awaitTermination(60)
    first, second = json.load(open(seen))
    assert len(first) == 3 and first == second


def test_a_large_batch(spark, folder):
    root = folder + "/data"
    spark.range(0, 1500000, 1, 1).selectExpr("id", "concat('name ', id) as name", "array(id, null) as a").write.format(
        "delta"
    ).save(root)
    seen = folder + "/seen"

    def work(df, batch_id):
        import json

        row = df.selectExpr("count(*) as n", "sum(id) as s", "max(name) as m", "sum(a[0]) as a").head()
        json.dump([row.n, row.s, row.m, row.a, df.where("id = 777777").head().name], open(seen, "w"))

    stream = spark.readStream.format("delta").load(root)
    query = stream.writeStream.foreachBatch(work).trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    total = 1500000 * 1499999 // 2
    assert json.load(open(seen)) == [1500000, total, "name 999999", total, "name 777777"]
    assert query.recentProgress[0].numInputRows == 1500000


@pytest.mark.parametrize(
    "action, words",
    [
        ("raise", ["FOREACH_BATCH_USER_FUNCTION_ERROR", "Traceback (most recent call last)", "KeyError", "in work"]),
        ("die", ["FOREACH_BATCH_USER_FUNCTION_ERROR", "exited unexpectedly", "signal 9"]),
        ("exit", ["FOREACH_BATCH_USER_FUNCTION_ERROR", "SystemExit"]),
        ("bad table", ["FOREACH_BATCH_USER_FUNCTION_ERROR", "TABLE_OR_VIEW_NOT_FOUND"]),
    ],
)
def test_a_function_that_fails(spark, folder, action, words):
    root = folder + "/data"
    write_rows(root + "/in", 0)
    seen = folder + "/seen"
    wrong = [action]

    def work(df, batch_id):
        import os
        import sys

        with open(seen, "a") as f:
            f.write("%d %s\n" % (batch_id, sorted(r.id for r in df.collect())))
        if wrong[0] == "raise":
            {}["missing"]
        if wrong[0] == "die":
            os.kill(os.getpid(), 9)
        if wrong[0] == "exit":
            sys.exit(3)
        if wrong[0] == "bad table":
            df.sparkSession.table("no_such_table").count()

    def start():
        writer = stream_of(spark, root).writeStream.foreachBatch(work).option("checkpointLocation", root + "/cp")
        return writer.trigger(availableNow=True).start()

    text = failure_of(start())
    for word in words:
        assert word in text, text
    assert not [n for n in os.listdir(root + "/cp/commits") if n.isdigit()]
    wrong[0] = None
    write_rows(root + "/in", 1)
    assert start().awaitTermination(60)
    assert open(seen).read().split("\n")[:-1] == ["0 [0, 1, 2]", "0 [0, 1, 2]", "1 [100, 101, 102]"]
    check_checkpoint(root + "/cp")


def test_a_function_that_cannot_be_read_is_told_at_start(spark, folder):
    write_rows(folder + "/in", 0)

    class Broken:
        def __reduce__(self):
            return (eval, ("1 / 0",))

    broken = Broken()

    def work(df, batch_id):
        broken

    with pytest.raises(PySparkException) as failed:
        stream_of(spark, folder).writeStream.foreachBatch(work).start()
    assert "STREAMING_PYTHON_RUNNER_INITIALIZATION_FAILURE" in str(failed.value)
    assert "ZeroDivisionError" in str(failed.value)


def test_what_it_prints_is_in_the_log(server, spark, folder):
    write_rows(folder + "/in", 0)

    def work(df, batch_id):
        import sys

        print("printed in batch", batch_id)
        print("and on standard error", file=sys.stderr)

    assert stream_of(spark, folder).writeStream.foreachBatch(work).trigger(availableNow=True).start().awaitTermination(60)
    log = open(server.log_path).read()
    assert "printed in batch 0" in log and "and on standard error" in log


@pytest.mark.parametrize("how", ["sleeps", "computes", "in the server"])
def test_stop_ends_a_function_that_hangs(spark, folder, how):
    root = folder + "/data"
    write_rows(root + "/in", 0)
    begun = folder + "/begun"

    def work(df, batch_id):
        import time

        open(begun, "w").write("x")
        if how == "sleeps":
            time.sleep(1000)
        if how == "computes":
            while True:
                pass
        spark = df.sparkSession
        spark.range(10**12).selectExpr("sum(id * 3)").collect()
        open(begun + "-ended", "w").write("x")

    query = stream_of(spark, root).writeStream.foreachBatch(work).option("checkpointLocation", root + "/cp").start()
    deadline = time.time() + 60
    while not os.path.exists(begun):
        assert time.time() < deadline
        time.sleep(0.05)
    time.sleep(0.5)
    began = time.time()
    query.stop()
    assert time.time() - began < 5
    assert not query.isActive and query.exception() is None
    assert not os.path.exists(begun + "-ended")
    assert not [n for n in os.listdir(root + "/cp/commits") if n.isdigit()]


def test_a_function_may_stop_its_own_query(spark, folder):
    write_rows(folder + "/in", 0)

    def work(df, batch_id):
        df.sparkSession.streams.active[0].stop()

    query = stream_of(spark, folder).writeStream.foreachBatch(work).start()
    began = time.time()
    assert query.awaitTermination(60)
    assert time.time() - began < 8 and query.exception() is None


def test_a_query_that_rested_for_long_gives_its_worker_back(spark, folder):
    spark.conf.set("fleuve.python.taskTimeout", "2s")  # the limit of a batch, not of the rest after it
    write_rows(folder + "/in", 0)
    pids = folder + "/pids"

    def work(df, batch_id):
        import os

        with open(pids, "a") as f:
            f.write("%d\n" % os.getpid())

    for run in range(2):
        query = stream_of(spark, folder).writeStream.foreachBatch(work).start()
        query.processAllAvailable()
        time.sleep(2.5)
        query.stop()
    first, second = open(pids).read().split()
    assert first == second


def test_a_server_with_a_token(start_server, folder):
    from pyspark.sql import SparkSession

    server = start_server(env={"FLEUVE_TOKEN": "a/b c;d"})
    port = server.url.rsplit(":", 1)[1]
    url = "sc://localhost:%s/;token=a%%2Fb%%20c%%3Bd;user_id=some%%20body" % port
    spark = SparkSession.builder.remote(url).create()
    write_rows(folder + "/in", 0)
    out = folder + "/out"

    def work(df, batch_id):
        df.write.format("delta").save(out)

    assert stream_of(spark, folder).writeStream.foreachBatch(work).trigger(availableNow=True).start().awaitTermination(60)
    assert spark.read.format("delta").load(out).count() == 3
    spark.stop()


def test_many_queries_share_one_lease(folder):
    """Each function waits for all others: they only end if none of them holds what the others need."""
    everybody = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(everybody)})
    try:
        server = Server(folder)
    finally:
        os.sched_setaffinity(0, everybody)
    try:
        spark = server.session()
        count = 8
        write_rows(folder + "/in", 0)
        spark.createDataFrame([], "id long").write.format("delta").save(folder + "/out")
        meet = folder + "/meet"
        os.makedirs(meet)
        queries = []
        for number in range(count):

            def work(df, batch_id, number=number):
                import os
                import time

                rows = df.count()
                open("%s/%d" % (meet, number), "w").write(str(rows))
                end = time.time() + 100
                while len(os.listdir(meet)) < count:
                    assert time.time() < end, "the others did not come"
                    time.sleep(0.05)
                df.write.format("delta").mode("append").save(folder + "/out")

            queries.append(stream_of(spark, folder).writeStream.foreachBatch(work).trigger(availableNow=True).start())
        for query in queries:
            assert query.awaitTermination(120)
        assert spark.read.format("delta").load(folder + "/out").count() == 3 * count
        spark.stop()
    finally:
        server.kill()


def test_killed_after_the_function_and_before_the_commit(folder):
    """Writes with txnAppId and txnVersion make every row appear once, wherever the process dies."""
    root = folder + "/data"
    os.makedirs(root)
    written = 0
    for point in [
        "stream.before_effect=kill@1",
        "foreach_batch.returned=kill@1",
        "foreach_batch.returned=kill@2",
        "stream.batch.run=kill@1",
        "checkpoint.commits.before=kill@1",
        "stream.commits.written=kill@1",
        None,
    ]:
        for _ in range(2):
            write_rows(root + "/in", written)
            written += 1
        server = Server(folder, env={"FLEUVE_FAILPOINTS": point} if point else None)
        try:
            spark = server.session()

            def work(df, batch_id):
                options = {"txnAppId": "kill-test", "txnVersion": batch_id}
                df.write.format("delta").mode("append").options(**options).save(root + "/one")
                df.write.format("delta").mode("append").options(**options).save(root + "/two")

            def run():
                try:
                    writer = stream_of(spark, root, 1).writeStream.foreachBatch(work)
                    query = writer.option("checkpointLocation", root + "/cp").trigger(availableNow=True).start()
                    query.awaitTermination(60)
                except Exception:  # the server died under the client
                    pass

            client = threading.Thread(target=run, daemon=True)
            client.start()
            if point:
                server.process.wait(60)
            client.join(60)
            assert not client.is_alive()
            if point is None:
                for name in ("one", "two"):
                    ids = sorted(r.id for r in spark.read.format("delta").load(root + "/" + name).collect())
                    assert ids == sorted(n * 100 + row for n in range(written) for row in range(3)), name
                check_checkpoint(root + "/cp")
                spark.stop()
        finally:
            server.kill()


def test_no_worker_stays(folder):
    server = Server(folder)
    try:
        spark = server.session()
        write_rows(folder + "/in", 0)
        pids = folder + "/pids"

        def work(df, batch_id):
            import os
            import time

            open(pids, "w").write(str(os.getpid()))
            time.sleep(1000)

        stream_of(spark, folder).writeStream.foreachBatch(work).start()
        deadline = time.time() + 60
        while not os.path.exists(pids) or not open(pids).read():
            assert time.time() < deadline
            time.sleep(0.05)
    finally:
        server.kill()
    pid = int(open(pids).read())
    deadline = time.time() + 5
    while os.path.exists("/proc/%d" % pid) and time.time() < deadline:
        time.sleep(0.05)
    assert not os.path.exists("/proc/%d" % pid) or open("/proc/%d/stat" % pid).read().split(") ")[1][0] == "Z"


def test_foreach_writers(spark, folder):
    root = folder + "/data"
    write_rows(root + "/in", 0)
    out = folder + "/rows"

    class Writer:
        def open(self, partition, epoch):
            self.epoch = epoch
            return epoch != 1

        def process(self, row):
            with open(out, "a") as f:
                f.write("%d %s\n" % (self.epoch, row))
            if row.id == 202:
                raise ValueError("no more")

        def close(self, error):
            with open(out, "a") as f:
                f.write("close %d %r\n" % (self.epoch, error))

    def start():
        writer = stream_of(spark, root, 1).selectExpr("id", "struct(id, 'x' as x) as s").writeStream.foreach(Writer())
        return writer.option("checkpointLocation", root + "/cp").trigger(availableNow=True).start()

    assert start().awaitTermination(60)
    write_rows(root + "/in", 1)
    assert start().awaitTermination(60)
    write_rows(root + "/in", 2)
    text = failure_of(start())
    assert "FOREACH_USER_FUNCTION_ERROR" in text and "ValueError: no more" in text
    lines = open(out).read().split("\n")
    assert lines[0] == "0 Row(id=0, s=Row(id=0, x='x'))"
    assert lines[3] == "close 0 None"
    assert lines[4] == "close 1 None"
    assert lines[-2] == "close 2 ValueError('no more')"
