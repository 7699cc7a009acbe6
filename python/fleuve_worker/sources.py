"""Data sources that the user wrote in Python: what reading, writing and streams of them share."""

import inspect
import json

from fleuve_worker.functions.job import failure, known_arguments


def mismatch(kind, expected, actual):
    return failure(kind, "DATA_SOURCE_TYPE_MISMATCH", expected=expected, actual=actual)


def type_name(value):
    return "'%s'" % type(value).__name__


def schema_of(description):
    """A struct type of its JSON form."""
    from pyspark.sql.types import StructType

    return StructType.fromJson(description)


def source_class(task):
    """The class that the client registered (blob 0), checked against the name it is asked for by."""
    from pyspark.sql.datasource import DataSource

    made = task.unpickle()
    if not (isinstance(made, type) and issubclass(made, DataSource)):
        raise mismatch("PySparkAssertionError", "a subclass of DataSource", type_name(made))
    if not inspect.ismethod(made.name):
        raise mismatch("PySparkTypeError", "'name()' method to be a classmethod", type_name(made.name))
    provider = task.header["provider"]
    if provider.lower() != made.name().lower():
        raise mismatch("PySparkAssertionError", "provider with name %s" % made.name(), "'%s'" % provider)
    return made


def instance(task):
    """A new source of the class, with the options of the header."""
    from pyspark.sql.datasource import CaseInsensitiveDict

    made = source_class(task)
    options = CaseInsensitiveDict()
    for key, value in task.header["options"]:
        options[key] = value
    return made(options=options)


def registered_source(task):
    """The source that an earlier task made and pickled (blob 0)."""
    from pyspark.sql.datasource import DataSource

    source = task.unpickle()
    if not isinstance(source, DataSource):
        raise mismatch("PySparkAssertionError", "a Python data source instance of type 'DataSource'", type_name(source))
    return source


def pickled(value):
    from pyspark.serializers import CloudPickleSerializer

    return CloudPickleSerializer().dumps(value)


def unpickled(data):
    from pyspark.serializers import CloudPickleSerializer

    return CloudPickleSerializer().loads(data)


def arrow_stream(schema, batches):
    """Record batches of one schema as the bytes of an Arrow IPC stream."""
    import pyarrow

    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue()


def partition_stream(partitions):
    """Partitions as a stream with one column of bytes."""
    import pyarrow

    column = pyarrow.array([pickled(partition) for partition in partitions], pyarrow.binary())
    batch = pyarrow.RecordBatch.from_arrays([column], ["partition"])
    return arrow_stream(batch.schema, [batch])


def to_batches(rows, most_rows, schema, source):
    """Record batches of what a reader gives: tuples, lists, Rows or record batches of its own."""
    from pyspark.sql.worker.plan_data_source_read import records_to_arrow_batches

    return records_to_arrow_batches(rows, most_rows, schema, source)


class ReadFunction:
    """What the pickled function of a read does with batches of partitions: it reads each of them."""

    def __init__(self, reader, source, schema, most_rows):
        self.reader, self.source, self.schema, self.most_rows = reader, source, schema, most_rows

    def __call__(self, batches):
        from pyspark.sql.datasource import InputPartition
        from pyspark.taskcontext import TaskContext

        number = 0
        for batch in batches:
            for data in batch.column(0).to_pylist():
                partition = unpickled(data)
                assert partition is None or isinstance(partition, InputPartition), (
                    "Expected the partition value to be of type 'InputPartition', but found %s." % type_name(partition)
                )
                context = TaskContext.get()
                if context is not None:
                    context._partitionId = number
                number += 1
                yield from self.read(partition)

    def read(self, partition):
        from collections.abc import Iterator

        rows = self.reader.read(partition)
        if not isinstance(rows, Iterator):
            raise failure(
                "PySparkRuntimeError",
                "DATA_SOURCE_INVALID_RETURN_TYPE",
                type=type(rows).__name__,
                name=self.source.name(),
                supported_types="iterator",
            )
        yield from to_batches(rows, self.most_rows, self.schema, self.source)


def row_converter(schema):
    """A function of a record batch that gives its rows as Row objects."""
    import pyarrow

    try:
        from pyspark.sql.conversion import ArrowTableToRowsConversion
    except ImportError:
        from pyspark.sql.connect.conversion import ArrowTableToRowsConversion

    def convert(batch):
        table = pyarrow.Table.from_batches([batch])
        return known_arguments(ArrowTableToRowsConversion.convert, table=table, schema=schema)

    return convert


def parse(offset):
    return json.loads(offset)
