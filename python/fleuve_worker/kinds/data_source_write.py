"""Rows go through the writer of a data source that the user wrote; then all of them count, or none.

    header   provider, options, schema of the rows, overwrite, streaming, batch (of a stream)
    blobs    the pickled class
    asks     {"ready": true} once there is a writer
             {"rows": true} for each piece; the answer is {"rows": true} and an Arrow stream, {"end": true} or {"failed": true}
             {"written": true} when all are written; the answer is {"commit": true} or {"commit": false}
"""

from fleuve_worker import sources


class AbortFailed(Exception):
    """The writer's `abort` raised."""


class NoMoreRows(Exception):
    """The query that gives the rows has failed."""


def run(task):
    header = task.header
    schema = sources.schema_of(header["schema"])
    source = sources.instance(task)
    writer = make_writer(source, schema, header)
    task.ask({"ready": True})
    try:
        message = write(task, writer, schema)
        answer, _ = task.ask({"written": True})
        if not answer["commit"]:
            raise NoMoreRows("the rows shall not count")
    except BaseException as error:
        end(abort, source, writer, schema, header, [None])
        if isinstance(error, NoMoreRows):
            return
        raise
    try:
        end(commit, source, writer, schema, header, [message])
    except BaseException:
        end(abort, source, writer, schema, header, [message])
        raise


def make_writer(source, schema, header):
    from pyspark.sql import datasource

    if not header["streaming"]:
        writer = source.writer(schema, header["overwrite"])
        if not isinstance(writer, datasource.DataSourceWriter):
            raise sources.mismatch("PySparkAssertionError", "an instance of DataSourceWriter", sources.type_name(writer))
        return writer
    writer = source.streamWriter(schema, header["overwrite"])
    kinds = (datasource.DataSourceStreamWriter, getattr(datasource, "DataSourceStreamArrowWriter", None))
    if not isinstance(writer, tuple(kind for kind in kinds if kind is not None)):
        raise sources.mismatch(
            "PySparkAssertionError",
            "an instance of DataSourceStreamWriter or DataSourceStreamArrowWriter",
            sources.type_name(writer),
        )
    return writer


def write(task, writer, schema):
    """Writes with a copy of the writer, as other processes would: what it keeps in itself is not seen by `commit`."""
    from pyspark.sql import datasource

    copy = sources.unpickled(sources.pickled(writer))
    kinds = (getattr(datasource, "DataSourceArrowWriter", None), getattr(datasource, "DataSourceStreamArrowWriter", None))
    if isinstance(writer, tuple(kind for kind in kinds if kind is not None)):
        message = copy.write(batches(task))
    else:
        convert = sources.row_converter(schema)
        message = copy.write(row for batch in batches(task) for row in convert(batch))
    if not isinstance(message, datasource.WriterCommitMessage):
        raise sources.mismatch(
            "PySparkRuntimeError",
            "'WriterCommitMessage' as the return type of the `write` method",
            type(message).__name__,
        )
    return sources.unpickled(sources.pickled(message))


def batches(task):
    import pyarrow

    while True:
        answer, data = task.ask({"rows": True})
        if answer.get("failed"):
            raise NoMoreRows("the query that gives the rows has failed")
        if answer.get("end"):
            return
        with pyarrow.ipc.open_stream(data) as reader:
            yield from reader


def end(how, source, writer, schema, header, messages):
    if header["streaming"]:
        # A writer that has seen no rows, as in every other process.
        how(source.streamWriter(schema=schema, overwrite=header["overwrite"]), messages, header["batch"])
    else:
        how(writer, messages)


def commit(writer, messages, *batch):
    writer.commit(messages, *batch)


def abort(writer, messages, *batch):
    try:
        writer.abort(messages, *batch)
    except BaseException as error:
        raise AbortFailed("%s: %s" % (type(error).__name__, error)) from error
