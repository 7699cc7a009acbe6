# What goes wrong with streams of Python data sources.
from pyspark.sql.datasource import (DataSource, DataSourceStreamReader, DataSourceStreamWriter, InputPartition,
                                    SimpleDataSourceStreamReader, WriterCommitMessage)
import re


def told(action, label):
    print("#", label)
    try:
        action()
        print("NO ERROR")
    except Exception as e:
        text = str(e)
        conditions = [c for c in re.findall(r"\[([A-Z][A-Z0-9_.]+)\]", text)]
        python = re.findall(r"^([\w.]*(?:Error|Exception)): (.*)$", text, re.M)
        print(list(dict.fromkeys(conditions)), python[-1:] if python else text.split("\n")[0][-150:] if not conditions else "")


def fail(*_):
    raise ValueError("no luck")


def stream(label, simple=False, **methods):
    class Reader(SimpleDataSourceStreamReader if simple else DataSourceStreamReader):
        def initialOffset(self):
            return {"o": 0}

        def latestOffset(self):
            return {"o": 2}

        def partitions(self, start, end):
            return [InputPartition(None)]

        def read(self, arg):
            return iter([(1,), (2,)])

    for name, method in methods.items():
        setattr(Reader, name, method)

    class Source(DataSource):
        @classmethod
        def name(cls):
            return label

        def schema(self):
            return "a int"

    if "reader" in methods:
        Source.streamReader = lambda self, schema: methods["reader"]()
    elif simple:
        Source.simpleStreamReader = lambda self, schema: Reader()
    else:
        Source.streamReader = lambda self, schema: Reader()
    spark.dataSource.register(Source)

    def go():
        frame = spark.readStream.format(label).load()
        run_stream(frame.writeStream.format("noop").option("checkpointLocation", tmp + "/" + label).trigger(once=True))

    told(go, label)


stream("s_ok")
stream("s_initial", initialOffset=fail)
stream("s_latest", latestOffset=fail)
stream("s_latest_type", latestOffset=lambda self: {"o": object()})
stream("s_partitions", partitions=fail)
stream("s_read", read=fail)
stream("s_row", read=lambda self, p: iter([(1, 2)]))
stream("s_commit", commit=fail)
stream("s_stop", stop=fail)
stream("s_simple", simple=True, read=fail)
stream("s_simple_pair", simple=True, read=lambda self, start: 5)


def sink(label, **methods):
    class Writer(DataSourceStreamWriter):
        def write(self, iterator):
            list(iterator)
            return WriterCommitMessage()

        def commit(self, messages, batchId):
            with open(self.path, "a") as f:
                f.write("commit %d\n" % batchId)

        def abort(self, messages, batchId):
            with open(self.path, "a") as f:
                f.write("abort %d %s\n" % (batchId, [m for m in messages if m]))

    for name, method in methods.items():
        setattr(Writer, name, method)

    class Sink(DataSource):
        @classmethod
        def name(cls):
            return label

    def make(self, schema, overwrite):
        writer = Writer()
        writer.path = self.options["out"]
        return writer

    if "none" in methods:
        pass
    elif "writer" in methods:
        Sink.streamWriter = lambda self, schema, overwrite: methods["writer"]()
    else:
        Sink.streamWriter = make
    spark.dataSource.register(Sink)
    out = tmp + "/" + label + ".out"

    def go():
        write_lines(tmp + "/in/1.json", [{"a": 1}])
        frame = spark.readStream.schema("a int").json(tmp + "/in")
        run_stream(frame.writeStream.format(label).option("out", out).option("checkpointLocation", tmp + "/" + label).trigger(availableNow=True))

    told(go, label)
    if os.path.exists(out):
        print(re.sub(" object at \\w+", "", open(out).read().rstrip()))


sink("k_ok")
sink("k_none", none=True)
sink("k_writer", writer=fail)
sink("k_writer_type", writer=lambda: 3)
sink("k_write", write=fail)
sink("k_message", write=lambda self, rows: 3)
sink("k_commit", commit=fail)
