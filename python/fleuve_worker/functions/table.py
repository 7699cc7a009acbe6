"""Table functions: objects whose methods give rows."""

import inspect
from collections.abc import Iterable

from fleuve_worker.functions import job as jobs
from fleuve_worker.functions import values

TABLE_ROWS, TABLE_ARROW_ROWS = 300, 301


def own_errors():
    """The exception by which `eval` says that it wants no more rows; PySpark 4.0 and later have it."""
    from pyspark.sql.udtf import SkipRestOfInputTableException

    return SkipRestOfInputTableException


class Function:
    """One table function of a job, and what becomes of the rows it gives."""

    def __init__(self, job):
        self.job = job
        self.call = job.calls[0]
        self.type = self.call.return_type
        self.handler = self.call.plain[0]
        if not isinstance(self.handler, type):
            from pyspark.errors import PySparkRuntimeError

            raise PySparkRuntimeError(
                "Invalid UDTF handler type. Expected a class (type 'type'), but got an instance of %s."
                % type(self.handler).__name__
            )
        self.skip = own_errors()
        self.arrow = self.call.eval_type == TABLE_ARROW_ROWS and self._arrow_writer()
        if not self.arrow:
            self.convert = values.row_result_converter(self.type)

    def _arrow_writer(self):
        if self.job.flag("spark.sql.legacy.execution.pythonUDTF.pandas.conversion.enabled", False):
            return None
        try:
            from pyspark.sql.conversion import LocalDataToArrowConversion
        except ImportError:
            return None
        return LocalDataToArrowConversion

    def make(self):
        """A new object of the user's class."""
        parameters = len(inspect.getfullargspec(self.handler).args)
        name = self.call.name
        try:
            if self.call.state is not None:
                if parameters > 2:
                    raise jobs.failure(
                        "PySparkRuntimeError", "UDTF_CONSTRUCTOR_INVALID_IMPLEMENTS_ANALYZE_METHOD", name=name
                    )
                if parameters == 2:
                    from pyspark.serializers import CloudPickleSerializer

                    made = self.handler(CloudPickleSerializer().loads(self.call.state))
                else:
                    made = self.handler()
            elif parameters > 1:
                raise jobs.failure("PySparkRuntimeError", "UDTF_CONSTRUCTOR_INVALID_NO_ANALYZE_METHOD", name=name)
            else:
                made = self.handler()
        except Exception as error:
            if type(error).__name__ == "PySparkRuntimeError":
                raise
            raise jobs.failure("PySparkRuntimeError", "UDTF_EXEC_ERROR", method_name="__init__", error=str(error))
        if not hasattr(made, "eval"):
            from pyspark.errors import PySparkRuntimeError

            raise PySparkRuntimeError(
                "Failed to execute the user defined table function because it has not implemented the 'eval' method. "
                "Please add the 'eval' method and try the query again."
            )
        try:
            inspect.signature(made.eval).bind(*self.call.positions, **self.call.keywords)
        except TypeError as error:
            raise jobs.failure(
                "PySparkRuntimeError",
                "UDTF_EVAL_METHOD_ARGUMENTS_DO_NOT_MATCH_SIGNATURE",
                name=name,
                reason=str(error),
            ) from None
        return made

    def rows(self, made, method, arguments):
        """Checked rows that a method gives. SkipRestOfInputTableException passes."""
        count = len(self.call.positions)
        names = list(self.call.keywords) if arguments else []
        try:
            result = getattr(made, method)(*arguments[:count], **dict(zip(names, arguments[count:])))
            if result is None:
                return
            if not isinstance(result, Iterable):
                raise jobs.failure(
                    "PySparkRuntimeError", "UDTF_RETURN_NOT_ITERABLE", type=type(result).__name__, func=method
                )
            for row in result:
                yield self.checked(row, method)
        except self.skip:
            raise
        except Exception as error:
            if type(error).__name__ in ("PySparkRuntimeError", "PySparkTypeError"):
                raise
            raise jobs.failure("PySparkRuntimeError", "UDTF_EXEC_ERROR", method_name=method, error=str(error))

    def checked(self, row, method):
        width = len(self.type.fields)
        if self.arrow:
            if not isinstance(row, tuple) and width == 1:
                row = (row,)
        if row is None:
            return None
        if hasattr(row, "__len__") and not isinstance(row, str) and len(row) != width:
            raise jobs.failure(
                "PySparkRuntimeError",
                "UDTF_RETURN_SCHEMA_MISMATCH",
                expected=str(width),
                actual=str(len(row)),
                func=method,
            )
        if not (isinstance(row, (list, dict, tuple)) or hasattr(row, "__dict__")):
            raise jobs.failure(
                "PySparkRuntimeError", "UDTF_INVALID_OUTPUT_ROW_TYPE", type=type(row).__name__, func=method
            )
        if isinstance(row, tuple):
            for i, (value, field) in enumerate(zip(row, self.type.fields)):
                if has_missing(value, field.dataType, field.nullable):
                    raise jobs.failure(
                        "PySparkRuntimeError",
                        "UDTF_EXEC_ERROR",
                        method_name="eval' or 'terminate",
                        error="Column %d within a returned row had a value of None, either directly or within "
                        "array/struct/map subfields, but the corresponding column type was declared as non-nullable; "
                        "please update the UDTF to return a non-None value at this location or otherwise declare the "
                        "column type as nullable." % i,
                    )
        return row

    def arrays(self, rows):
        """One Arrow array per column of the function."""
        import pyarrow
        from pyspark.sql.pandas.types import to_arrow_type

        kinds = [to_arrow_type(field.dataType) for field in self.type.fields]
        if not self.arrow:
            made = [None if row is None else self.convert(row) for row in rows]
            return [
                values.arrow_of_internal([None if row is None else row[i] for row in made], field.dataType, kind)
                for i, (field, kind) in enumerate(zip(self.type.fields, kinds))
            ]
        arrays = []
        for i, (field, kind) in enumerate(zip(self.type.fields, kinds)):
            writer = jobs.known_arguments(
                self.arrow._create_converter, dataType=field.dataType, none_on_identity=True
            )
            column = [None if row is None else self.item(row, i, field.name) for row in rows]
            if writer is not None:
                column = [None if value is None else writer(value) for value in column]
            try:
                arrays.append(pyarrow.array(column, kind))
            except pyarrow.lib.ArrowException as error:
                raise jobs.failure(
                    "PySparkRuntimeError",
                    "UDTF_ARROW_TYPE_CONVERSION_ERROR",
                    data=str(rows),
                    schema=self.type.simpleString(),
                    arrow_schema=str(to_arrow_type(self.type)),
                ) from error
        return arrays

    @staticmethod
    def item(row, position, name):
        if isinstance(row, (tuple, list)):
            return row[position]
        return row.get(name) if isinstance(row, dict) else getattr(row, name)


def has_missing(value, data_type, nullable):
    """True where None stands in a place that is declared as not nullable."""
    from pyspark.sql import types

    if value is None:
        return not nullable
    if isinstance(data_type, types.ArrayType) and isinstance(value, list):
        return any(has_missing(item, data_type.elementType, data_type.containsNull) for item in value)
    if isinstance(data_type, types.MapType) and isinstance(value, dict):
        return any(
            has_missing(key, data_type.keyType, False) or has_missing(item, data_type.valueType, data_type.valueContainsNull)
            for key, item in value.items()
        )
    if isinstance(data_type, types.StructType) and isinstance(value, tuple):
        return any(has_missing(item, f.dataType, f.nullable) for item, f in zip(value, data_type.fields))
    return False


def per_row(job):
    """Rows of each input row, with the input row's number; what `terminate` gives belongs to the last one."""
    import pyarrow

    function = Function(job)
    outer = job.task.header["outer"]
    made = function.make()
    at = 0
    skipping = False
    numbers, rows = [], []

    def flush():
        if numbers:
            job.write_columns([pyarrow.array(numbers, "int64"), *function.arrays(rows)])
            numbers.clear()
            rows.clear()

    def terminate():
        if hasattr(made, "terminate"):
            for row in function.rows(made, "terminate", ()):
                numbers.append(max(at - 1, 0))
                rows.append(row)

    try:
        for batch in job.batches():
            if function.call.all_positions:
                arguments = list(zip(*values.python_columns(job, batch, function.call.all_positions)))
            else:
                arguments = [()] * batch.num_rows
            for row_arguments in arguments:
                before = len(numbers)
                if not skipping:
                    try:
                        for row in function.rows(made, "eval", row_arguments):
                            numbers.append(at)
                            rows.append(row)
                    except function.skip:
                        skipping = True
                if outer and len(numbers) == before:
                    numbers.append(at)
                    rows.append(None)
                at += 1
                if len(rows) >= jobs.MOST_ROWS:
                    flush()
            flush()
        terminate()
        flush()
    finally:
        if hasattr(made, "cleanup"):
            made.cleanup()


def per_partition(job):
    """Rows of each partition of a table argument: an object of its own for each."""
    function = Function(job)
    keys = len(job.input_types) - 1 - len(function.call.all_positions)
    made = None
    rows = []

    def flush():
        if rows:
            job.write_columns(function.arrays(rows))
            rows.clear()

    try:
        for parts in job.groups():
            made = function.make()
            try:
                for part in parts:
                    columns = [
                        values.python_values(job, part.column(keys + p), job.input_types[1 + keys + p])
                        for p in function.call.all_positions
                    ]
                    for row_arguments in zip(*columns):
                        rows.extend(function.rows(made, "eval", row_arguments))
                        if len(rows) >= jobs.MOST_ROWS:
                            flush()
            except function.skip:
                pass
            if hasattr(made, "terminate"):
                rows.extend(function.rows(made, "terminate", ()))
            flush()
    finally:
        if made is not None and hasattr(made, "cleanup"):
            made.cleanup()
