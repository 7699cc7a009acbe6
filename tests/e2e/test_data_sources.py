"""Data sources written in Python, as a user meets them beyond single programs: a server killed between a write and its
commit, a reader that dies, modules that offer sources, many rows, joins with streams, limits."""

import json
import os
import sys
import threading
import time

import pytest
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    InputPartition,
    WriterCommitMessage,
)

from conftest import Server

# The workers do not know this module: its classes travel with all that they are.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


class Span(InputPartition):
    def __init__(self, first, last):
        self.first, self.last = first, last


class Numbers(DataSource):
    """Whole numbers: `rows` of them, or on streams as many as the file `until` says."""

    def schema(self):
        return "id long"

    def reader(self, schema):
        options = self.options

        class Reader(DataSourceReader):
            def partitions(self):
                return [Span(i * 1000, i * 1000 + int(options["rows"])) for i in range(int(options.get("parts", "1")))]

            def read(self, partition):
                if options.get("die"):
                    os.kill(os.getpid(), 9)
                for i in range(partition.first, partition.last):
                    if options.get("note"):
                        with open(options["note"], "a") as f:
                            f.write("%d\n" % i)
                    yield (i,)

        return Reader()

    def streamReader(self, schema):
        options = self.options

        class Reader(DataSourceStreamReader):
            def initialOffset(self):
                return {"at": 0}

            def latestOffset(self):
                return {"at": int(open(options["until"]).read())}

            def partitions(self, start, end):
                return [Span(start["at"], end["at"])]

            def read(self, partition):
                return iter([(i,) for i in range(partition.first, partition.last)])

            def stop(self):
                with open(options["until"] + ".stopped", "a") as f:
                    f.write("stopped\n")

        return Reader()


class Done(WriterCommitMessage):
    def __init__(self, rows):
        self.rows = rows


class Ledger(DataSource):
    """A line for each commit; a batch that is there already is left out, as the interface asks for."""

    def streamWriter(self, schema, overwrite):
        path = self.options["file"]

        class Writer(DataSourceStreamWriter):
            def write(self, iterator):
                return Done(sorted(row[0] for row in iterator))

            def commit(self, messages, batchId):
                known = [json.loads(line)[0] for line in open(path)] if os.path.exists(path) else []
                if batchId not in known:
                    with open(path, "a") as f:
                        f.write(json.dumps([batchId, [i for m in messages for i in m.rows]]) + "\n")

        return Writer()


def register(spark):
    spark.dataSource.register(Numbers)
    spark.dataSource.register(Ledger)


def until(path, number):
    with open(path, "w") as f:
        f.write(str(number))


def start(spark, folder, **trigger):
    frame = spark.readStream.format("Numbers").option("until", folder + "/until").load()
    writer = frame.writeStream.format("Ledger").option("file", folder + "/ledger")
    return writer.option("checkpointLocation", folder + "/checkpoint").trigger(**(trigger or {"availableNow": True})).start()


@pytest.mark.parametrize("point", ["user_sink.written", "stream.sink.committed", "stream.offsets.written", "stream.commits.written"])
def test_killed_between_write_and_commit(folder, point):
    for end, failpoint in ((5, None), (9, point), (9, None)):
        until(folder + "/until", end)
        server = Server(folder, env={"FLEUVE_FAILPOINTS": failpoint + "=kill@1"} if failpoint else None)

        def run():
            try:
                spark = server.session()
                register(spark)
                start(spark, folder).awaitTermination(60)
            except Exception:  # the server died under the client
                assert failpoint

        client = threading.Thread(target=run, daemon=True)
        client.start()
        try:
            if failpoint:
                server.process.wait(60)
            client.join(60)
            assert not client.is_alive()
        finally:
            server.kill()
    lines = [json.loads(line) for line in open(folder + "/ledger")]
    assert lines == [[0, [0, 1, 2, 3, 4]], [1, [5, 6, 7, 8]]]
    offsets = open(folder + "/checkpoint/offsets/1").read().split("\n")
    assert offsets[2] == '{"at": 9}'


def test_a_reader_that_dies(spark):
    register(spark)
    with pytest.raises(PySparkException) as failed:
        spark.read.format("Numbers").options(rows=3, die="yes").load().collect()
    assert "FLEUVE_PYTHON_WORKER_DIED" in str(failed.value)
    assert spark.read.format("Numbers").options(rows=3).load().count() == 3


def test_a_limit_ends_the_reading(spark, folder):
    register(spark)
    frame = spark.read.format("Numbers").options(rows=1000000, parts=3, note=folder + "/note").load()
    assert [row.id for row in frame.limit(5).collect()] == [0, 1, 2, 3, 4]
    assert sum(1 for _ in open(folder + "/note")) < 100000


def test_many_rows_and_joins_with_streams(spark, folder):
    register(spark)
    frame = spark.read.format("Numbers").options(rows=300000).load()
    assert frame.groupBy().sum("id").head()[0] == sum(range(300000))
    assert frame.inputFiles() == []
    until(folder + "/until", 50)
    stream = spark.readStream.format("Numbers").option("until", folder + "/until").load()
    joined = stream.join(spark.read.format("Numbers").options(rows=20).load(), "id")
    query = joined.writeStream.format("memory").queryName("joined_numbers").trigger(availableNow=True).start()
    assert query.awaitTermination(60)
    assert spark.table("joined_numbers").count() == 20
    assert query.lastProgress.sources[0].numInputRows == 50


def test_a_running_stream_takes_what_comes_and_stops_its_reader(spark, folder):
    register(spark)
    until(folder + "/until", 2)
    query = start(spark, folder, processingTime="50 milliseconds")
    query.processAllAvailable()
    until(folder + "/until", 4)
    end = time.time() + 30
    while time.time() < end and len(open(folder + "/ledger").readlines()) < 2:
        time.sleep(0.1)
    query.stop()
    assert [json.loads(line) for line in open(folder + "/ledger")] == [[0, [0, 1]], [1, [2, 3]]]
    assert open(folder + "/until.stopped").read() == "stopped\n"


def test_a_module_offers_a_source(folder):
    os.makedirs(folder + "/modules")
    with open(folder + "/modules/pyspark_fleuve_offer.py", "w") as f:
        f.write(
            "from pyspark.sql.datasource import DataSource, DataSourceReader\n"
            "class Reader(DataSourceReader):\n"
            "    def read(self, partition):\n"
            "        yield ('offered',)\n"
            "class DefaultSource(DataSource):\n"
            "    @classmethod\n"
            "    def name(cls):\n"
            "        return 'fleuve_offer'\n"
            "    def schema(self):\n"
            "        return 'text string'\n"
            "    def reader(self, schema):\n"
            "        return Reader()\n"
        )
    server = Server(folder, env={"PYTHONPATH": folder + "/modules"})
    try:
        spark = server.session()
        assert spark.read.format("fleuve_offer").load().collect()[0].text == "offered"
        with pytest.raises(PySparkException) as failed:
            spark.read.format("fleuve_no_offer").load().schema
        assert failed.value.getCondition() == "DATA_SOURCE_NOT_FOUND"
        server.close_sessions()
    finally:
        server.kill()
