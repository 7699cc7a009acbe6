"""Values between Arrow, Python and pandas, as PySpark's own workers see them."""

import decimal

from fleuve_worker.functions import job as jobs


# ---- Arrow to Python objects, for functions of one row at a time ----


def python_columns(job, batch, positions):
    """One list of Python objects per argument."""
    return [python_values(job, batch.column(p), job.input_types[p]) for p in positions]


def python_values(job, array, data_type):
    from pyspark.sql import types

    if isinstance(data_type, types.TimestampType) or isinstance(data_type, types.TimestampNTZType):
        micros = array.cast("int64").to_pylist() if str(array.type) != "null" else array.to_pylist()
        return [None if value is None else data_type.fromInternal(value) for value in micros]
    if isinstance(data_type, types.StructType):
        fields = [python_values(job, child, f.dataType) for child, f in zip(_children(array), data_type.fields)]
        names = data_type.names
        make = types._create_row
        valid = array.is_valid().to_pylist()
        if not fields:
            return [make(names, ()) if ok else None for ok in valid]
        return [make(names, values) if ok else None for ok, values in zip(valid, zip(*fields))]
    if isinstance(data_type, types.ArrayType):
        items = python_values(job, array.flatten(), data_type.elementType)
        return _divided(array, lambda start, end: items[start:end])
    if isinstance(data_type, types.MapType):
        keys, values = _map_parts(array)
        keys = python_values(job, keys, data_type.keyType)
        values = python_values(job, values, data_type.valueType)
        return _divided(array, lambda start, end: dict(zip(keys[start:end], values[start:end])))
    if isinstance(data_type, types.BinaryType) and not job.binary_as_bytes:
        return [None if value is None else bytearray(value) for value in array.to_pylist()]
    if type(data_type).__name__ == "VariantType":
        parts = [child.to_pylist() for child in _children(array)]
        valid = array.is_valid().to_pylist()
        return [types.VariantVal(v, m) if ok else None for ok, v, m in zip(valid, *parts)]
    return array.to_pylist()


def _children(array):
    """The fields of a struct array, cut as it is."""
    return [array.field(i) for i in range(array.type.num_fields)]


def _divided(array, part):
    """Lists of the flattened items of a list or map array; null ones have none of them."""
    import pyarrow.compute

    if pyarrow.types.is_map(array.type):
        offsets = array.offsets.to_pylist()
        lengths = [end - start for start, end in zip(offsets, offsets[1:])]
    else:
        lengths = pyarrow.compute.list_value_length(array).to_pylist()
    valid = array.is_valid().to_pylist()
    result = []
    at = 0
    for ok, length in zip(valid, lengths):
        if not ok:
            result.append(None)
            continue
        result.append(part(at, at + length))
        at += length
    return result


def _map_parts(array):
    """Keys and values of the entries of all maps that are not null."""
    import pyarrow

    offsets = array.offsets.to_pylist()
    if array.null_count == 0 and len(array) > 0:
        count = offsets[-1] - offsets[0]
        return array.keys.slice(offsets[0], count), array.items.slice(offsets[0], count)
    keys, values = [], []
    for ok, start, end in zip(array.is_valid().to_pylist(), offsets, offsets[1:]):
        if ok and end > start:
            keys.append(array.keys.slice(start, end - start))
            values.append(array.items.slice(start, end - start))
    join = pyarrow.concat_arrays
    return (
        join(keys) if keys else pyarrow.array([], array.type.key_type),
        join(values) if values else pyarrow.array([], array.type.item_type),
    )


# ---- Results of functions of one row at a time ----


def row_result_converter(data_type):
    """What Spark makes of a pickled result: a value of another type counts as NULL, numbers wrap around."""
    convert = _unpickled(data_type)
    if data_type.needConversion():
        to_internal = data_type.toInternal
        return lambda value: convert(to_internal(value))
    return convert


def _whole(bits):
    modulus, half = 1 << bits, 1 << (bits - 1)

    def convert(value):
        if type(value) is int and -(1 << 63) <= value < (1 << 63):
            return (value + half) % modulus - half
        if isinstance(value, int) and not isinstance(value, bool) and -(1 << 63) <= value < (1 << 63):
            return (int(value) + half) % modulus - half
        return None

    return convert


def java_text(value):
    """What Java's toString gives for the object that a Python value becomes."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return java_double(value)
    if isinstance(value, (list, set, frozenset)):
        return "[" + ", ".join("null" if v is None else java_text(v) for v in value) + "]"
    if isinstance(value, dict):
        inner = ", ".join(
            "%s=%s" % tuple("null" if v is None else java_text(v) for v in pair) for pair in value.items()
        )
        return "{" + inner + "}"
    return str(value)


def java_double(value):
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = repr(value)
        if "e" in text:
            text = format(decimal.Decimal(text), "f")
        return text if "." in text else text + ".0"
    sign, digits, exponent = decimal.Decimal(repr(value)).as_tuple()
    digits = "".join(map(str, digits))
    exponent += len(digits) - 1
    digits = digits.rstrip("0") or "0"
    return "%s%s.%sE%d" % ("-" if sign else "", digits[0], digits[1:] or "0", exponent)


def _unpickled(data_type):
    """From a value in Spark's internal form (after `toInternal`) to one that Arrow takes."""
    from pyspark.sql import types

    if isinstance(data_type, types.StringType):
        return java_text
    if isinstance(data_type, types.BooleanType):
        return lambda value: value if isinstance(value, bool) else None
    for kind, bits in (
        (types.ByteType, 8),
        (types.ShortType, 16),
        (types.IntegerType, 32),
        (types.LongType, 64),
        (types.DateType, 32),
        (types.TimestampType, 64),
        (types.TimestampNTZType, 64),
        (types.DayTimeIntervalType, 64),
    ):
        if isinstance(data_type, kind):
            return _whole(bits)
    if type(data_type).__name__ == "YearMonthIntervalType":
        return _whole(32)
    if isinstance(data_type, (types.FloatType, types.DoubleType)):
        return lambda value: value if isinstance(value, float) else None
    if isinstance(data_type, types.DecimalType):
        return lambda value: _decimal(value, data_type)
    if isinstance(data_type, types.BinaryType):

        def binary(value):
            if isinstance(value, str):
                return value.encode()
            return bytes(value) if isinstance(value, (bytes, bytearray)) else None

        return binary
    if isinstance(data_type, types.NullType):
        return lambda value: None
    if isinstance(data_type, types.ArrayType):
        item = _unpickled(data_type.elementType)

        def array(value):
            if not isinstance(value, (list, tuple)) and type(value).__name__ != "array":
                return None
            return [None if v is None else item(v) for v in value]

        return array
    if isinstance(data_type, types.MapType):
        key, item = _unpickled(data_type.keyType), _unpickled(data_type.valueType)

        def mapping(value):
            if not isinstance(value, dict):
                return None
            return [(key(k), None if v is None else item(v)) for k, v in value.items()]

        return mapping
    if isinstance(data_type, types.StructType):
        fields = [(f.name, _unpickled(f.dataType)) for f in data_type.fields]

        def struct(value):
            if not isinstance(value, (tuple, list)):
                return None
            if len(value) != len(fields):
                raise jobs.Refused(
                    "STRUCT_ARRAY_LENGTH_MISMATCH",
                    "Input row doesn't have expected number of values required by the schema. "
                    "%d fields are required while %d values are provided." % (len(fields), len(value)),
                )
            return tuple(None if v is None else convert(v) for (_, convert), v in zip(fields, value))

        return struct
    if type(data_type).__name__ == "VariantType":
        return lambda value: value if isinstance(value, dict) else None
    raise jobs.failure("PySparkTypeError", "UNSUPPORTED_DATA_TYPE", data_type=str(data_type))


def _decimal(value, data_type):
    if not isinstance(value, decimal.Decimal):
        return None
    with decimal.localcontext() as context:
        context.prec = 80
        made = value.quantize(decimal.Decimal(1).scaleb(-data_type.scale), rounding=decimal.ROUND_HALF_UP)
    if made.is_finite() and len(made.as_tuple().digits) > data_type.precision and made != 0:
        raise jobs.Refused(
            "NUMERIC_VALUE_OUT_OF_RANGE.WITHOUT_SUGGESTION",
            "%s cannot be represented as Decimal(%d, %d)." % (value, data_type.precision, data_type.scale),
        )
    return made


def arrow_of_internal(values, data_type, arrow_type):
    """An array of values as `_unpickled` gives them."""
    import pyarrow
    from pyspark.sql import types

    if isinstance(data_type, types.StructType):
        valid = [value is not None for value in values]
        if not data_type.fields:
            return pyarrow.array([{} if ok else None for ok in valid], arrow_type)
        children = []
        for i, field in enumerate(data_type.fields):
            column = [value[i] if value is not None else None for value in values]
            children.append(arrow_of_internal(column, field.dataType, arrow_type.field(i).type))
        fields = [arrow_type.field(i).with_nullable(True) for i in range(len(children))]
        mask = pyarrow.array([not ok for ok in valid], pyarrow.bool_())
        return pyarrow.StructArray.from_arrays(children, fields=fields, mask=mask)
    if isinstance(data_type, types.ArrayType):
        items = [item for value in values if value is not None for item in value]
        flat = arrow_of_internal(items, data_type.elementType, arrow_type.value_type)
        return pyarrow.ListArray.from_arrays(_offsets(values), flat)
    if isinstance(data_type, types.MapType):
        pairs = [pair for value in values if value is not None for pair in value]
        keys = arrow_of_internal([pair[0] for pair in pairs], data_type.keyType, arrow_type.key_type)
        items = arrow_of_internal([pair[1] for pair in pairs], data_type.valueType, arrow_type.item_type)
        offsets = _offsets(values)
        return pyarrow.MapArray.from_arrays(offsets, keys, items)
    if isinstance(data_type, (types.DateType,)):
        return pyarrow.array(values, "int32").cast(arrow_type)
    if isinstance(data_type, (types.TimestampType, types.TimestampNTZType, types.DayTimeIntervalType)):
        return pyarrow.array(values, "int64").view(arrow_type)
    if type(data_type).__name__ == "VariantType":
        return pyarrow.array(
            [None if v is None else {name: bytes(v[name]) for name in ("value", "metadata")} for v in values],
            pyarrow.struct([("value", pyarrow.binary()), ("metadata", pyarrow.binary())]),
        )
    return pyarrow.array(values, arrow_type)


def _offsets(values):
    import pyarrow

    offsets, at = [], 0
    for value in values:
        offsets.append(at if value is not None else None)
        at += len(value) if value is not None else 0
    return pyarrow.array([*offsets, at], "int32")


# ---- Arrow to pandas and back ----


class Pandas:
    """Converters of one operator. `structs` tells how values of struct types look inside of others: dict or row.

    Data types are known by their identity: they are those of the job and live as long.
    """

    def __init__(self, job, structs="dict", frames_for_structs=False, lists=False):
        self.job = job
        self.structs = structs
        self.frames_for_structs = frames_for_structs
        self.lists = lists
        self._to = {}
        self._from = {}
        self._kinds = {}

    def series(self, array, data_type):
        """A Series; a DataFrame for a struct where the function gets those."""
        from pyspark.sql import types

        if self.frames_for_structs and isinstance(data_type, types.StructType):
            import pandas

            import pyarrow

            chunks = array.combine_chunks() if isinstance(array, pyarrow.ChunkedArray) else array
            parts = [
                self._series(child, field.dataType).rename(field.name)
                for child, field in zip(chunks.flatten(), data_type.fields)
            ]
            if not parts:
                return pandas.DataFrame(index=range(len(array)))
            return pandas.concat(parts, axis=1)
        return self._series(array, data_type)

    def _series(self, array, data_type):
        from pyspark.sql.pandas.types import _create_converter_to_pandas

        made = array.to_pandas(date_as_object=True, coerce_temporal_nanoseconds=True)
        key = id(data_type)
        if key not in self._to:
            self._to[key] = jobs.known_arguments(
                _create_converter_to_pandas,
                data_type=data_type,
                nullable=True,
                timezone=self.job.zone,
                struct_in_pandas=self.structs,
                error_on_duplicated_field_names=True,
                ndarray_as_list=self.lists,
            )
        return self._to[key](made)

    def frame(self, batch, names, data_types):
        """A DataFrame of the columns of a batch or table."""
        import pandas

        parts = [
            self.series(column, data_type).rename(name)
            for column, name, data_type in zip(batch.columns, names, data_types)
        ]
        if not parts:
            return pandas.DataFrame(index=range(batch.num_rows))
        return pandas.concat(parts, axis=1)

    def array(self, series, data_type, arrow_type):
        """An Arrow array of a Series of results."""
        import pandas
        import pyarrow
        from pyspark.errors import PySparkTypeError, PySparkValueError
        from pyspark.sql.pandas.types import _create_converter_from_pandas

        if isinstance(series.dtype, pandas.CategoricalDtype):
            series = series.astype(series.dtypes.categories.dtype)
        key = id(data_type)
        if key not in self._from:
            self._from[key] = jobs.known_arguments(
                _create_converter_from_pandas,
                data_type=data_type,
                timezone=self.job.zone,
                error_on_duplicated_field_names=False,
            )
        series = self._from[key](series)
        if (
            self.job.flag("spark.sql.execution.pythonUDF.pandas.intToDecimalCoercionEnabled", False)
            and pyarrow.types.is_decimal(arrow_type)
            and series.dtype.kind in "iu"
            and not series.empty
        ):
            series = series.apply(lambda x: decimal.Decimal(x) if pandas.notna(x) else None)
        mask = None if hasattr(series.array, "__arrow_array__") else series.isnull()
        safe = self.job.safe
        told = "Exception thrown when converting pandas.Series (%s) with name '%s' to Arrow Array (%s)."
        try:
            try:
                made = pyarrow.Array.from_pandas(series, mask=mask, type=arrow_type, safe=safe)
            except pyarrow.lib.ArrowInvalid:
                made = pyarrow.Array.from_pandas(series, mask=mask).cast(target_type=arrow_type, safe=safe)
            return one_array(made)
        except TypeError as error:
            raise PySparkTypeError(told % (series.dtype, series.name, arrow_type)) from error
        except ValueError as error:
            told %= (series.dtype, series.name, arrow_type)
            if safe:
                told += (
                    " It can be caused by overflows or other unsafe conversions warned by Arrow. Arrow safe type "
                    "check can be disabled by using SQL config "
                    "`spark.sql.execution.pandas.convertToArrowArraySafely`."
                )
            raise PySparkValueError(told) from error

    def struct_arrays(self, frame, data_type):
        """One Arrow array per field of `data_type`, of a DataFrame whose columns go by name or by position."""
        import pyarrow
        from pyspark.sql.pandas.types import to_arrow_type

        key = id(data_type)
        if key not in self._kinds:
            self._kinds[key] = [to_arrow_type(field.dataType) for field in data_type.fields]
        kinds = self._kinds[key]
        if len(frame.columns) == 0:
            return [pyarrow.nulls(len(frame), kind) for kind in kinds]
        if self.job.columns_by_name and any(isinstance(name, str) for name in frame.columns):
            columns = [frame[field.name] for field in data_type.fields]
        else:
            columns = [frame[frame.columns[i]].rename(f.name) for i, f in enumerate(data_type.fields)]
        return [
            self.array(column, field.dataType, kind)
            for column, field, kind in zip(columns, data_type.fields, kinds)
        ]


def one_array(array):
    """An array of what may be one in several chunks."""
    import pyarrow

    if not isinstance(array, pyarrow.ChunkedArray):
        return array
    made = array.combine_chunks()
    return made if not isinstance(made, pyarrow.ChunkedArray) else pyarrow.concat_arrays(made.chunks)


def struct_array(arrays, data_type):
    import pyarrow
    from pyspark.sql.pandas.types import to_arrow_type

    kind = to_arrow_type(data_type)
    return pyarrow.StructArray.from_arrays(arrays, fields=[kind.field(i) for i in range(len(arrays))])


def check_pandas(result, data_type, by_name, first_columns_only):
    """Spark's checks of a DataFrame (or, for a type that is no struct, a Series) of results."""
    import pandas
    from pyspark.sql import types

    expected = pandas.DataFrame if isinstance(data_type, types.StructType) else pandas.Series
    if not isinstance(result, expected):
        raise jobs.failure(
            "PySparkTypeError",
            "UDF_RETURN_TYPE",
            expected="pandas." + expected.__name__,
            actual=type(result).__name__,
        )
    if expected is pandas.Series or (result.empty and len(result.columns) == 0):
        return
    fields = {field.name for field in data_type.fields}
    columns = result.columns[: len(fields)] if first_columns_only else result.columns
    if by_name and any(isinstance(name, str) for name in result.columns) and set(columns) != fields:
        missing = sorted(fields.difference(columns))
        extra = sorted(set(columns).difference(fields))
        raise jobs.failure(
            "PySparkRuntimeError",
            "RESULT_COLUMNS_MISMATCH_FOR_PANDAS_UDF",
            missing=" Missing: %s." % ", ".join(missing) if missing else "",
            extra=" Unexpected: %s." % ", ".join(extra) if extra else "",
        )
    if len(columns) != len(data_type.fields):
        raise jobs.failure(
            "PySparkRuntimeError",
            "RESULT_LENGTH_MISMATCH_FOR_PANDAS_UDF",
            expected=str(len(data_type.fields)),
            actual=str(len(result.columns)),
        )


def check_arrow(result, kind, data_type, by_name):
    """Spark's checks of a Table or RecordBatch of results; gives its columns in the order of `data_type`."""
    import pyarrow
    from pyspark.sql.pandas.types import to_arrow_type

    if not isinstance(result, kind):
        raise jobs.failure(
            "PySparkTypeError",
            "UDF_RETURN_TYPE",
            expected="pyarrow." + kind.__name__,
            actual=type(result).__name__,
        )
    kinds = [to_arrow_type(field.dataType) for field in data_type.fields]
    if result.num_columns == 0 and result.num_rows == 0:
        return [pyarrow.array([], k) for k in kinds]
    names = [field.name for field in data_type.fields]
    actual = list(zip(result.schema.names, result.schema.types))
    if by_name:
        missing = sorted(set(names).difference(result.schema.names))
        extra = sorted(set(result.schema.names).difference(names))
        if missing or extra:
            raise jobs.failure(
                "PySparkRuntimeError",
                "RESULT_COLUMNS_MISMATCH_FOR_ARROW_UDF",
                missing=" Missing: %s." % ", ".join(missing) if missing else "",
                extra=" Unexpected: %s." % ", ".join(extra) if extra else "",
            )
        found = dict(actual)
        pairs = sorted(((n, k, found[n]) for n, k in zip(names, kinds)), key=lambda pair: pair[0])
        columns = [result.column(result.schema.names.index(name)) for name in names]
    else:
        pairs = [(name, k, a[1]) for name, k, a in zip(names, kinds, actual)]
        columns = list(result.columns)
    wrong = [pair for pair in pairs if pair[1] != pair[2]]
    if wrong:
        raise jobs.failure(
            "PySparkRuntimeError",
            "RESULT_TYPE_MISMATCH_FOR_ARROW_UDF",
            mismatch=", ".join("column '%s' (expected %s, actual %s)" % pair for pair in wrong),
        )
    return columns

