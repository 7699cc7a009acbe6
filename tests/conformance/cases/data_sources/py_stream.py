# Streams read and written by Python: offsets, partitions, restarts, the checkpoint's text.
from dataclasses import dataclass
from pyspark.sql.datasource import (DataSource, DataSourceStreamReader, DataSourceStreamWriter, InputPartition,
                                    SimpleDataSourceStreamReader, WriterCommitMessage)


class Part(InputPartition):
    def __init__(self, first, last):
        self.first, self.last = first, last


class StreamReader(DataSourceStreamReader):
    def __init__(self, options):
        self.options = options
        self.at = int(options.get("begin", "0"))

    def limit(self):
        with open(self.options["until"]) as f:
            return int(f.read())

    def initialOffset(self):
        return {"offset": self.at, "parts": ["a", 1]}

    def latestOffset(self):
        return {"offset": self.limit(), "parts": ["a", 2]}

    def partitions(self, start, end):
        middle = (start["offset"] + end["offset"]) // 2
        return [Part(start["offset"], middle), Part(middle, end["offset"])]

    def commit(self, end):
        with open(self.options["until"] + ".commits", "a") as f:
            f.write(json.dumps(end) + "\n")

    def read(self, partition):
        for i in range(partition.first, partition.last):
            yield (i, "v%d" % i)


class SimpleReader(SimpleDataSourceStreamReader):
    def __init__(self, options):
        self.options = options

    def initialOffset(self):
        return {"o": 0}

    def read(self, start):
        with open(self.options["until"]) as f:
            end = min(int(f.read()), start["o"] + 3)
        return iter([(i, "s%d" % i) for i in range(start["o"], end)]), {"o": end}

    def readBetweenOffsets(self, start, end):
        return iter([(i, "b%d" % i) for i in range(start["o"], end["o"])])

    def commit(self, end):
        pass


@dataclass
class Rows(WriterCommitMessage):
    rows: list


class StreamWriter(DataSourceStreamWriter):
    def __init__(self, path, overwrite):
        self.path, self.overwrite = path, overwrite

    def write(self, iterator):
        return Rows(sorted(tuple(r) for r in iterator))

    def commit(self, messages, batchId):
        rows = sorted(r for m in messages for r in m.rows)
        with open(self.path, "a") as f:
            f.write("batch %d overwrite=%s %s\n" % (batchId, self.overwrite, rows))

    def abort(self, messages, batchId):
        with open(self.path, "a") as f:
            f.write("abort %d\n" % batchId)


class Ends(DataSource):
    @classmethod
    def name(cls):
        return "conf_ends"

    def schema(self):
        return "id int, v string"

    def streamReader(self, schema):
        return StreamReader(self.options)

    def streamWriter(self, schema, overwrite):
        return StreamWriter(self.options["out"], overwrite)


class Simple(DataSource):
    @classmethod
    def name(cls):
        return "conf_simple"

    def schema(self):
        return "id int, v string"

    def simpleStreamReader(self, schema):
        return SimpleReader(self.options)


spark.dataSource.register(Ends)
spark.dataSource.register(Simple)


def until(n):
    with open(tmp + "/until", "w") as f:
        f.write(str(n))


def run(name, source, times, checkpoint):
    stream = spark.readStream.format(source).option("until", tmp + "/until").load()
    print(stream.schema.simpleString(), stream.isStreaming)
    return run_stream(stream.writeStream.format("conf_ends").option("out", tmp + "/" + name).option("checkpointLocation", checkpoint).trigger(**times))


def log(checkpoint):
    for n in sorted(os.listdir(checkpoint + "/offsets"), key=lambda n: (len(n), n)):
        if n.isdigit():
            print(n, open(checkpoint + "/offsets/" + n).read().split("\n")[2:])


until(5)
q = run("a", "conf_ends", dict(availableNow=True), tmp + "/cp")
p = q.lastProgress
print(p["sources"][0]["startOffset"], p["sources"][0]["endOffset"], p["sources"][0]["latestOffset"], p["sources"][0]["numInputRows"])
print(p["sink"]["numOutputRows"])
until(8)
run("a", "conf_ends", dict(availableNow=True), tmp + "/cp")
run("a", "conf_ends", dict(availableNow=True), tmp + "/cp")
print(open(tmp + "/a").read())
print(open(tmp + "/until.commits").read())
log(tmp + "/cp")

until(7)
run("s", "conf_simple", dict(availableNow=True), tmp + "/cps")
log(tmp + "/cps")
run("s", "conf_simple", dict(availableNow=True), tmp + "/cps")
log(tmp + "/cps")
print(open(tmp + "/s").read())

until(4)
stream = spark.readStream.format("conf_ends").option("until", tmp + "/until").load()
q = stream.groupBy().count().writeStream.format("conf_ends").option("out", tmp + "/c").outputMode("complete").option("checkpointLocation", tmp + "/cpc").trigger(availableNow=True)
run_stream(q)
print(open(tmp + "/c").read())
error(lambda: run_stream(stream.groupBy().count().writeStream.format("conf_ends").option("out", tmp + "/u").outputMode("update").option("checkpointLocation", tmp + "/cpu").trigger(availableNow=True)), label="update")
if os.path.exists(tmp + "/u"):
    print(open(tmp + "/u").read())
run_stream(stream.selectExpr("id * 2 as twice").writeStream.format("memory").queryName("conf_mem").trigger(availableNow=True))
show(spark.table("conf_mem"))
error(lambda: run_stream(stream.writeStream.format("conf_ends").option("out", tmp + "/n").trigger(availableNow=True)), label="no checkpoint", message=True)
