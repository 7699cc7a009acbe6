"""Functions that give one value for each row."""

from fleuve_worker.functions import job as jobs
from fleuve_worker.functions import values


def evaluate(job):
    if job.calls[0].eval_type in (jobs.EVAL_PANDAS_ITER, jobs.EVAL_ARROW_ITER):
        evaluate_iterator(job, job.calls[0])
        return
    evaluators = [evaluator(job, call) for call in job.calls]
    for batch in job.batches():
        job.write_columns([evaluate_one(batch) for evaluate_one in evaluators])


def evaluator(job, call):
    """What makes an array of a batch."""
    kinds = {
        jobs.EVAL_ROW: by_rows,
        jobs.EVAL_ARROW_ROW: by_arrow_rows,
        jobs.EVAL_PANDAS: by_pandas,
        jobs.EVAL_ARROW: by_arrow,
    }
    return kinds[call.eval_type](job, call)


def rows_of(job, call, batch):
    if not call.all_positions:
        return [()] * batch.num_rows
    return zip(*values.python_columns(job, batch, call.all_positions))


def by_rows(job, call):
    convert = values.row_result_converter(call.return_type)
    arrow_type = job.output_schema.field(job.calls.index(call)).type
    function = call.function

    def evaluate_one(batch):
        results = [function(*row) for row in rows_of(job, call, batch)]
        made = [None if value is None else convert(value) for value in results]
        return values.arrow_of_internal(made, call.return_type, arrow_type)

    return evaluate_one


def by_arrow_rows(job, call):
    """Rows that came as Arrow and whose results go back as Arrow: PySpark's own conversions."""
    import pyarrow
    from pyspark.sql.pandas.types import to_arrow_type

    if job.flag("spark.sql.legacy.execution.pythonUDF.pandas.conversion.enabled", False):
        return by_pandas_rows(job, call)
    try:
        from pyspark.sql.conversion import ArrowTableToRowsConversion, LocalDataToArrowConversion
    except ImportError:  # PySpark 4.0 converts through pandas
        return by_pandas_rows(job, call)
    arrow_type = to_arrow_type(call.return_type)
    readers = {
        p: jobs.known_arguments(
            ArrowTableToRowsConversion._create_converter,
            dataType=job.input_types[p],
            none_on_identity=True,
            binary_as_bytes=job.binary_as_bytes,
        )
        for p in call.all_positions
    }
    writer = jobs.known_arguments(
        LocalDataToArrowConversion._create_converter,
        dataType=call.return_type,
        none_on_identity=True,
        int_to_decimal_coercion_enabled=job.flag(
            "spark.sql.execution.pythonUDF.pandas.intToDecimalCoercionEnabled", False
        ),
    )
    function = call.function

    def column(batch, position):
        read = readers[position]
        items = batch.column(position).to_pylist()
        return items if read is None else [read(item) for item in items]

    def evaluate_one(batch):
        if call.all_positions:
            rows = zip(*[column(batch, p) for p in call.all_positions])
        else:
            rows = [()] * batch.num_rows
        results = at_once(job, function, rows)
        made = results if writer is None else [writer(result) for result in results]
        try:
            return pyarrow.array(made, type=arrow_type)
        except pyarrow.lib.ArrowInvalid:
            return pyarrow.array(made).cast(target_type=arrow_type, safe=job.safe)

    return evaluate_one


def at_once(job, function, rows):
    """The results of all rows; of several at a time where the session says so."""
    level = job.settings.get("spark.sql.execution.pythonUDF.arrow.concurrency.level")
    if not level:
        return [function(*row) for row in rows]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max_workers=int(level)) as pool:
        return list(pool.map(lambda row: function(*row), rows))


def by_pandas_rows(job, call):
    import pandas
    from pyspark.sql import types
    from pyspark.sql.pandas.types import to_arrow_type

    arrow_type = to_arrow_type(call.return_type)
    pandas_values = values.Pandas(job, structs="row", lists=True)
    finish = None
    if isinstance(call.return_type, types.StringType):
        finish = str
    elif isinstance(call.return_type, types.BinaryType):
        finish = bytes
    function = call.function

    def evaluate_one(batch):
        if call.all_positions:
            columns = [pandas_values.series(batch.column(p), job.input_types[p]) for p in call.all_positions]
            rows = zip(*columns)
        else:
            rows = [()] * batch.num_rows
        results = [function(*row) for row in rows]
        if finish is not None:
            results = [None if result is None else finish(result) for result in results]
        return pandas_values.array(pandas.Series(results), call.return_type, arrow_type)

    return evaluate_one


def checked_length(result, expected_kind, udf_type, length):
    if not hasattr(result, "__len__"):
        raise jobs.failure(
            "PySparkTypeError", "UDF_RETURN_TYPE", expected=expected_kind, actual=type(result).__name__
        )
    if len(result) != length:
        raise jobs.failure(
            "PySparkRuntimeError",
            "SCHEMA_MISMATCH_FOR_PANDAS_UDF",
            udf_type=udf_type,
            expected=str(length),
            actual=str(len(result)),
        )
    return result


def pandas_array(pandas_values, result, data_type):
    """An array of a Series, or of a DataFrame where the type is a struct."""
    import pandas
    from pyspark.errors import PySparkValueError
    from pyspark.sql import types
    from pyspark.sql.pandas.types import to_arrow_type

    arrow_type = to_arrow_type(data_type)
    if isinstance(data_type, types.StructType):
        if not isinstance(result, pandas.DataFrame):
            raise PySparkValueError(
                "Invalid return type. Please make sure that the UDF returns a "
                "pandas.DataFrame when the specified return type is StructType."
            )
        return values.struct_array(pandas_values.struct_arrays(result, data_type), data_type)
    if not isinstance(result, pandas.Series):
        result = pandas.Series(result)
    return pandas_values.array(result, data_type, arrow_type)


def by_pandas(job, call):
    from pyspark.sql import types

    kind = "pandas.DataFrame" if isinstance(call.return_type, types.StructType) else "pandas.Series"
    pandas_values = values.Pandas(job, frames_for_structs=True)

    def evaluate_one(batch):
        arguments = [pandas_values.series(batch.column(p), job.input_types[p]) for p in call.all_positions]
        result = checked_length(call.function(*arguments), kind, "pandas_udf", batch.num_rows)
        return pandas_array(pandas_values, result, call.return_type)

    return evaluate_one


def arrow_array(result, arrow_type):
    result = values.one_array(result)
    return result if result.type == arrow_type else result.cast(target_type=arrow_type, safe=True)


def by_arrow(job, call):
    from pyspark.sql.pandas.types import to_arrow_type

    arrow_type = to_arrow_type(call.return_type)

    def evaluate_one(batch):
        arguments = [batch.column(p) for p in call.all_positions]
        result = checked_length(call.function(*arguments), "pyarrow.Array", "arrow_udf", batch.num_rows)
        return arrow_array(result, arrow_type)

    return evaluate_one


def evaluate_iterator(job, call):
    """A function from an iterator of batches to an iterator of batches with as many rows."""
    import pandas
    import pyarrow
    from pyspark.sql import types
    from pyspark.sql.pandas.types import to_arrow_type

    is_pandas = call.eval_type == jobs.EVAL_PANDAS_ITER
    pandas_values = values.Pandas(job, frames_for_structs=True)
    arrow_type = to_arrow_type(call.return_type)
    taken = given = 0

    def inputs():
        nonlocal taken
        for batch in job.batches():
            taken += batch.num_rows
            if is_pandas:
                arguments = tuple(pandas_values.series(batch.column(p), job.input_types[p]) for p in call.all_positions)
            else:
                arguments = tuple(batch.column(p) for p in call.all_positions)
            yield arguments[0] if len(arguments) == 1 else arguments

    if is_pandas:
        kind = pandas.DataFrame if isinstance(call.return_type, types.StructType) else pandas.Series
        label = "pandas." + kind.__name__
    else:
        kind, label = pyarrow.Array, "pyarrow.Array"
    source = inputs()
    for element in checked_iterator(call.function(source), label):
        if not isinstance(element, kind):
            raise wrong_element(label, element)
        given += len(element)
        if given > taken:
            raise jobs.failure("PySparkRuntimeError", "PANDAS_UDF_OUTPUT_EXCEEDS_INPUT_ROWS")
        if is_pandas:
            values.check_pandas(element, call.return_type, by_name=True, first_columns_only=True)
            made = pandas_array(pandas_values, element, call.return_type)
        else:
            made = arrow_array(element, arrow_type)
        job.write_columns([made])
    try:
        next(source)
    except StopIteration:
        pass
    else:
        raise jobs.failure("PySparkRuntimeError", "STOP_ITERATION_OCCURRED_FROM_SCALAR_ITER_PANDAS_UDF")
    if given != taken:
        raise jobs.failure(
            "PySparkRuntimeError",
            "RESULT_LENGTH_MISMATCH_FOR_SCALAR_ITER_PANDAS_UDF",
            output_length=str(given),
            input_length=str(taken),
        )


def checked_iterator(result, label):
    if not hasattr(result, "__iter__"):
        raise jobs.failure(
            "PySparkTypeError",
            "UDF_RETURN_TYPE",
            expected="iterator of " + label,
            actual=type(result).__name__,
        )
    return iter(result)


def wrong_element(label, element):
    return jobs.failure(
        "PySparkTypeError",
        "UDF_RETURN_TYPE",
        expected="iterator of " + label,
        actual="iterator of " + type(element).__name__,
    )
