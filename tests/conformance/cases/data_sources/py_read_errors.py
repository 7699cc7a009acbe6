# What goes wrong with a data source in Python.
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql import Row
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



def source(label, schema="a int, b string", read=None, partitions=None, reader=None):
    class Reader(DataSourceReader):
        def read(self, partition):
            return read(partition) if read else iter([(1, "x")])

    if partitions:
        Reader.partitions = lambda self: partitions()

    class Source(DataSource):
        @classmethod
        def name(cls):
            return label

    if schema is not None:
        Source.schema = lambda self: schema() if callable(schema) else schema
    Source.reader = lambda self, schema: reader() if reader else Reader()
    spark.dataSource.register(Source)
    return lambda: spark.read.format(label).load()


def fail(*_):
    raise ValueError("no luck")


def attempt(label, **how):
    frame = source(label, **how)
    told(lambda: frame().schema, label + " schema")
    told(lambda: frame().collect(), label + " collect")


attempt("e_no_schema", schema=None)
attempt("e_schema_fails", schema=fail)
attempt("e_bad_ddl", schema="a inta b")
attempt("e_ddl_type", schema="a inta")
attempt("e_ddl_no_struct", schema="int")
attempt("e_ddl_empty", schema="")
attempt("e_ddl_struct", schema="struct<a: int, b: string>")
attempt("e_reader_fails", reader=fail)
attempt("e_reader_type", reader=lambda: 3)
attempt("e_partitions_fail", partitions=fail)
attempt("e_partitions_type", partitions=lambda: (1,))
attempt("e_partition_type", partitions=lambda: [1, "x"])
attempt("e_read_fails", read=fail)
attempt("e_read_list", read=lambda p: [(1, "x")])
attempt("e_short_row", read=lambda p: iter([(1,)]))
attempt("e_no_tuple", read=lambda p: iter([{"a": 1, "b": 2}]))
attempt("e_int", read=lambda p: iter([5]))
attempt("e_row_names", read=lambda p: iter([Row(a=1, c="x")]))
attempt("e_wrong_type", read=lambda p: iter([("x", "y")]))


def batch(**columns):
    def read(partition):
        import pyarrow

        yield pyarrow.RecordBatch.from_pydict(columns)

    return read


attempt("e_batch_short", read=batch(a=[1]))
attempt("e_batch_names", read=batch(a=[1], c=["x"]))
attempt("e_batch_order", read=batch(b=["x"], a=[1]))
attempt("e_batch_type", read=batch(a=["x"], b=["y"]))
told(lambda: spark.read.format("never_registered").load().schema, "1")


class NoReader(DataSource):
    def schema(self):
        return "a int"


spark.dataSource.register(NoReader)
told(lambda: spark.read.format("noreader").load().collect(), "2")
told(lambda: spark.range(1).write.format("noreader").mode("append").save(), "4")


class BadInit(DataSource):
    def __init__(self, options):
        raise KeyError("needs an option")

    def schema(self):
        return "a int"


spark.dataSource.register(BadInit)
told(lambda: spark.read.format("badinit").load().schema, "5")


class Json(DataSource):
    @classmethod
    def name(cls):
        return "json"

    def schema(self):
        return "a int"


told(lambda: spark.dataSource.register(Json), "built in 6")


class Twice(DataSource):
    def schema(self):
        return "a int"


spark.dataSource.register(Twice)


class Twice(DataSource):
    def schema(self):
        return "z string"


spark.dataSource.register(Twice)
print(spark.read.format("twice").load().schema.simpleString())
error(lambda: spark.dataSource.register(str), label="no class")
