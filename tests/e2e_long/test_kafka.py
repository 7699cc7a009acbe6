"""Kafka with a real broker: exactly once through kills of the server, transactions, and what a restart finds.

The broker is the one KAFKA_BOOTSTRAP names (topics are made by their first use, with 2 partitions); else Apache Kafka is
fetched with Maven and started here. Without Java or Maven the tests are skipped.
"""

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import uuid

import pytest

POM = """<project><modelVersion>4.0.0</modelVersion><groupId>x</groupId><artifactId>x</artifactId><version>1</version><dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>4.1.1</version></dependency>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>4.1.1</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
</dependencies></project>"""

SETTINGS = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={folder}/data
num.partitions=2
auto.create.topics.enable=true
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Broker:
    def __init__(self, folder, jars):
        self.folder, self.jars = folder, jars
        self.port = free_port()
        self.address = "127.0.0.1:%d" % self.port
        with open(folder + "/server.properties", "w") as f:
            f.write(SETTINGS.format(port=self.port, controller=free_port(), folder=folder))
        self.java("kafka.tools.StorageTool", "format", "-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-c", folder + "/server.properties").wait()
        self.start()

    def java(self, *words):
        log = open(self.folder + "/log", "a")
        return subprocess.Popen(["java", "-Xmx512m", "-cp", self.jars + "/*", *words], stdout=log, stderr=log)

    def start(self):
        self.process = self.java("kafka.Kafka", self.folder + "/server.properties")
        for _ in range(240):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            assert self.process.poll() is None, open(self.folder + "/log").read()[-2000:]
            time.sleep(0.25)
        raise AssertionError("the broker does not answer")

    def stop(self):
        self.process.terminate()
        self.process.wait(60)


@pytest.fixture(scope="module")
def broker():
    if os.environ.get("KAFKA_BOOTSTRAP"):
        class Given:
            address = os.environ["KAFKA_BOOTSTRAP"]
        yield Given()
        return
    if not shutil.which("java") or not shutil.which("mvn"):
        pytest.skip("needs Java and Maven, or KAFKA_BOOTSTRAP")
    jars = os.path.expanduser("~/.cache/fleuve/kafka-4.1.1")
    if not os.path.isdir(jars):
        with tempfile.TemporaryDirectory() as folder:
            with open(folder + "/pom.xml", "w") as f:
                f.write(POM)
            subprocess.run(["mvn", "-q", "dependency:copy-dependencies", "-DincludeScope=runtime",
                            "-DoutputDirectory=" + folder + "/jars"], cwd=folder, check=True)
            os.makedirs(os.path.dirname(jars), exist_ok=True)
            shutil.move(folder + "/jars", jars)
    folder = tempfile.mkdtemp(prefix="fleuve-kafka-")
    running = Broker(folder, jars)
    yield running
    running.stop()
    shutil.rmtree(folder, ignore_errors=True)


def produce(spark, broker, topic, first, count):
    (spark.range(first, first + count).selectExpr("CAST(id AS STRING) AS key", "CAST(id AS STRING) AS value").write
     .format("kafka").option("kafka.bootstrap.servers", broker.address).option("topic", topic).save())


def stream(spark, broker, topic, **options):
    return (spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker.address).option("subscribe", topic)
            .option("startingOffsets", "earliest").options(**options).load())


def values(spark, broker, topic, **options):
    frame = (spark.read.format("kafka").option("kafka.bootstrap.servers", broker.address).option("subscribe", topic)
             .options(**options).load())
    return sorted(int(row.v) for row in frame.selectExpr("CAST(value AS STRING) AS v").collect())


def produce_large(spark, broker, topic, first, count):
    """Records of 1 kB, so that a batch is larger than what is read before it runs."""
    (spark.range(first, first + count).selectExpr("CAST(id AS STRING) AS key", "CONCAT(CAST(id AS STRING), ' ', REPEAT('x', 1000)) AS value").write
     .format("kafka").option("kafka.bootstrap.servers", broker.address).option("topic", topic).save())


NUMBER = "CAST(SPLIT(CAST(value AS STRING), ' ')[0] AS BIGINT) AS id"


def test_a_large_batch_is_read_while_it_runs(spark, folder, broker):
    topic = "large-" + uuid.uuid4().hex
    count = 60_000
    produce_large(spark, broker, topic, 0, count)

    def run(frame, name):
        query = frame.writeStream.format("delta").option("checkpointLocation", folder + "/cp-" + name).trigger(availableNow=True).start(folder + "/" + name)
        query.awaitTermination()
        return query

    query = run(stream(spark, broker, topic).selectExpr(NUMBER, "partition", "offset"), "out")
    assert [p.numInputRows for p in query.recentProgress if p.numInputRows] == [count]
    out = spark.read.format("delta").load(folder + "/out")
    assert out.count() == count and out.agg({"id": "sum"}).collect()[0][0] == count * (count - 1) // 2
    # The next batch goes on where this one ended; then one that is small.
    for more in (40_000, 10):
        produce_large(spark, broker, topic, count, more)
        count += more
        run(stream(spark, broker, topic).selectExpr(NUMBER, "partition", "offset"), "out")
        assert out.count() == count and out.agg({"id": "sum"}).collect()[0][0] == count * (count - 1) // 2
    ranges = out.groupBy("partition").agg({"offset": "max"}).collect()
    assert sum(r["max(offset)"] + 1 for r in ranges) == count


def test_a_large_batch_is_read_as_often_as_it_is_used(spark, folder, broker):
    topic = "twice-" + uuid.uuid4().hex
    count = 40_000
    produce_large(spark, broker, topic, 0, count)
    seen = folder + "/seen"

    def look(frame, _):  # runs in a process of its own
        with open(seen, "a") as out:
            out.write("%d %d %d\n" % (frame.count(), frame.agg({"id": "sum"}).collect()[0][0], frame.limit(5).count()))

    query = stream(spark, broker, topic).selectExpr(NUMBER).writeStream.foreachBatch(look).option("checkpointLocation", folder + "/cp").trigger(availableNow=True).start()
    query.awaitTermination()
    assert open(seen).read() == "%d %d 5\n" % (count, count * (count - 1) // 2)
    frame = stream(spark, broker, topic).selectExpr(NUMBER)
    # Each side of the union reads everything once: none takes what is the other's.
    sides = frame.selectExpr("id", "'a' AS side").union(frame.selectExpr("id", "'b' AS side"))
    query = (sides.writeStream.format("delta").option("checkpointLocation", folder + "/cp2").trigger(availableNow=True).start(folder + "/both"))
    query.awaitTermination()
    both = spark.read.format("delta").load(folder + "/both")
    assert both.count() == 2 * count and both.agg({"id": "sum"}).collect()[0][0] == count * (count - 1)
    for side in "ab":
        one = both.filter("side = '%s'" % side)
        assert (one.count(), one.select("id").distinct().count()) == (count, count)


def test_kafka_to_delta_exactly_once_through_kills(start_server, folder, broker):
    topic = "kills-" + uuid.uuid4().hex
    server = start_server()
    produce(server.session(), broker, topic, 0, 2000)
    for kill in range(4):
        query = (stream(server.session(), broker, topic, maxOffsetsPerTrigger=97).selectExpr("CAST(CAST(value AS STRING) AS BIGINT) AS id")
                 .writeStream.format("delta").option("checkpointLocation", folder + "/cp").start(folder + "/out"))
        time.sleep(0.7 + 0.2 * kill)
        assert query.isActive
        server.kill()
        server = start_server()
    spark = server.session()
    query = (stream(spark, broker, topic).selectExpr("CAST(CAST(value AS STRING) AS BIGINT) AS id").writeStream.format("delta")
             .option("checkpointLocation", folder + "/cp").trigger(availableNow=True).start(folder + "/out"))
    query.awaitTermination()
    assert sorted(row.id for row in spark.read.format("delta").load(folder + "/out").collect()) == list(range(2000))


def test_kafka_to_kafka_exactly_once_with_transactions(start_server, folder, broker):
    topic, out = "in-" + uuid.uuid4().hex, "out-" + uuid.uuid4().hex
    server = start_server()
    produce(server.session(), broker, topic, 0, 1000)

    def start(spark, **trigger):
        return (stream(spark, broker, topic, maxOffsetsPerTrigger=53).selectExpr("key", "value").writeStream.format("kafka")
                .option("kafka.bootstrap.servers", broker.address).option("topic", out).option("kafka.transactional.id", out)
                .option("checkpointLocation", folder + "/cp").trigger(**trigger).start())

    for kill in range(4):
        query = start(server.session(), processingTime="0 seconds")
        time.sleep(1.2 + 0.2 * kill)
        assert query.isActive
        server.kill()
        server = start_server()
    spark = server.session()
    start(spark, availableNow=True).awaitTermination()
    assert values(spark, broker, out, **{"kafka.isolation.level": "read_committed"}) == list(range(1000))


def test_records_come_soon_after_they_were_written(spark, folder, broker):
    topic = "soon-" + uuid.uuid4().hex
    produce(spark, broker, topic, 0, 1)
    query = (stream(spark, broker, topic).selectExpr("CAST(CAST(value AS STRING) AS BIGINT) AS id").writeStream.format("delta")
             .option("checkpointLocation", folder + "/cp").start(folder + "/out"))
    query.processAllAvailable()
    produce(spark, broker, topic, 1, 1)
    for _ in range(100):
        if spark.read.format("delta").load(folder + "/out").count() == 2:
            break
        time.sleep(0.05)
    assert spark.read.format("delta").load(folder + "/out").count() == 2
    progress = query.lastProgress
    assert json.loads(progress.sources[0].endOffset)[topic]
    query.stop()


def test_a_broker_that_is_away_is_waited_for(spark, folder, broker):
    if not hasattr(broker, "stop"):
        pytest.skip("the broker is not ours")
    topic = "away-" + uuid.uuid4().hex
    produce(spark, broker, topic, 0, 10)
    query = (stream(spark, broker, topic).selectExpr("CAST(CAST(value AS STRING) AS BIGINT) AS id").writeStream.format("delta")
             .option("checkpointLocation", folder + "/cp").start(folder + "/out"))
    query.processAllAvailable()
    broker.stop()
    time.sleep(2)
    broker.start()
    produce(spark, broker, topic, 10, 10)
    query.processAllAvailable()
    assert query.isActive
    assert sorted(row.id for row in spark.read.format("delta").load(folder + "/out").collect()) == list(range(20))
    query.stop()
