"""Asks a table function's static method `analyze` for the columns it gives and how it wants its input."""

import inspect
import json

from fleuve_worker.functions import values
from fleuve_worker.functions.job import Job, spark_type


def run(task):
    import pyarrow
    from pyspark.errors import PySparkValueError
    from pyspark.serializers import CloudPickleSerializer
    from pyspark.sql.types import StructType
    from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult

    header = task.header
    name = header["name"]
    prefix = "Failed to evaluate the user-defined table function '%s'" % name
    handler = CloudPickleSerializer().loads(task.blobs[0])
    with pyarrow.ipc.open_stream(task.blobs[1]) as reader:
        row = reader.read_next_batch()
    if not hasattr(handler, "analyze"):
        raise PySparkValueError(
            prefix + " because it has neither a declared return type nor a static method 'analyze'."
        )
    job = Job.__new__(Job)
    job.settings = header["settings"]
    job.input_types = [field.dataType for field in spark_type(header["input"]).fields]
    arguments, keywords = [], {}
    for i, description in enumerate(header["arguments"]):
        constant = description["is_constant"] and not description["is_table"]
        argument = AnalyzeArgument(
            dataType=spark_type(description["type"]),
            value=values.python_values(job, row.column(i), job.input_types[i])[0] if constant else None,
            isTable=description["is_table"],
            isConstantExpression=description["is_constant"],
        )
        if description["name"]:
            keywords[description["name"]] = argument
        else:
            arguments.append(argument)
    try:
        inspect.signature(handler.analyze).bind(*arguments, **keywords)
    except TypeError as error:
        raise PySparkValueError(
            prefix + " because the function arguments did not match the expected signature of the static 'analyze' "
            "method (%s). Please update the query so that this table function call provides arguments matching the "
            "expected signature, or else update the table function so that its static 'analyze' method accepts the "
            "provided arguments, and then try the query again." % error
        )
    result = handler.analyze(*arguments, **keywords)
    if not isinstance(result, AnalyzeResult):
        raise PySparkValueError(
            prefix + " because the static 'analyze' method expects a result of type pyspark.sql.udtf.AnalyzeResult, "
            "but instead this method returned a value of type: %s" % type(result)
        )
    if not isinstance(result.schema, StructType):
        raise PySparkValueError(
            prefix + " because the static 'analyze' method expects a result of type pyspark.sql.udtf.AnalyzeResult "
            "with a 'schema' field comprising a StructType, but the 'schema' field had the wrong type: %s"
            % type(result.schema)
        )
    task.write(CloudPickleSerializer().dumps(result))
    task.result = {
        "schema": json.loads(result.schema.json()),
        "single_partition": bool(result.withSinglePartition),
        "partition_by": [column.name for column in result.partitionBy],
        "order_by": [
            {"column": key.name, "ascending": bool(key.ascending), "nulls_first": key.overrideNullsFirst}
            for key in result.orderBy
        ],
        "select": [column.name for column in result.select],
    }
