"""foreach: the rows of one partition of one batch go through the user's function or writer object.

    header   partition, batch: what `open` gets; schema: JSON of the rows
    blobs    the pickled (function of (partition, iterator of Row), None, serializer, serializer)
    input    Arrow record batches
"""


def run(task):
    from pyspark.sql.types import StructType
    from pyspark.taskcontext import TaskContext

    context = TaskContext._getOrCreate()
    context._partitionId = task.header["partition"]
    context._attemptNumber = 0
    context._localProperties = {"streaming.sql.batchId": str(task.header["batch"])}
    try:
        command = task.unpickle()
        function = command[0] if isinstance(command, tuple) else command
        schema = StructType.fromJson(task.header["schema"])
        for _ in function(task.header["partition"], rows(task, schema)):
            pass
    finally:
        TaskContext._taskContext = None


def rows(task, schema):
    import pyarrow

    try:
        from pyspark.sql.conversion import ArrowTableToRowsConversion
    except ImportError:
        from pyspark.sql.connect.conversion import ArrowTableToRowsConversion
    for batch in task.read_batches():
        yield from ArrowTableToRowsConversion.convert(pyarrow.Table.from_batches([batch]), schema)
