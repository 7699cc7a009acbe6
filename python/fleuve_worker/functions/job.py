"""One operator's work as the server described it: functions, arguments, settings."""

import functools
import inspect
import json

EVAL_ROW, EVAL_ARROW_ROW = 100, 101
EVAL_PANDAS, EVAL_PANDAS_ITER = 200, 204
EVAL_ARROW, EVAL_ARROW_ITER = 250, 251
MOST_ROWS = 10000


def failure(kind, condition, **parameters):
    """One of PySpark's own errors; the versions differ in how the arguments are called."""
    import pyspark.errors

    make = getattr(pyspark.errors, kind)
    try:
        return make(errorClass=condition, messageParameters=parameters)
    except TypeError:
        return make(error_class=condition, message_parameters=parameters)


class Refused(Exception):
    """A value that Spark itself refuses: an error of the query, not of the user's code."""

    def __init__(self, condition, message):
        super().__init__(message)
        self._condition = condition

    def getCondition(self):
        return self._condition


def known_arguments(function, **arguments):
    """Calls `function` with those of the arguments that this version of it has."""
    names = _parameters(function)
    return function(**{name: value for name, value in arguments.items() if name in names})


@functools.lru_cache(maxsize=None)
def _parameters(function):
    return frozenset(inspect.signature(function).parameters)


def spark_type(description):
    """A Spark type of its JSON form; char and varchar are plain strings here."""
    from pyspark.sql.types import _parse_datatype_json_string

    return _parse_datatype_json_string(json.dumps(_without_lengths(description)))


def _without_lengths(description):
    if isinstance(description, str):
        return "string" if description.startswith(("char(", "varchar(")) else description
    if isinstance(description, dict):
        return {
            key: value if key == "metadata" else _without_lengths(value) if key != "name" else value
            for key, value in description.items()
        }
    if isinstance(description, list):
        return [_without_lengths(item) for item in description]
    return description


class Call:
    """A function, or several of which each takes the result of the one before, and where its arguments are."""

    def __init__(self, job, description):
        from pyspark.serializers import CloudPickleSerializer

        first = description["functions"][0]
        last = description["functions"][-1]
        self.name = last["name"]
        self.eval_type = last["eval_type"]
        self.state = job.task.blobs[first["state"]] if "state" in first else None
        loaded = [CloudPickleSerializer().loads(job.task.blobs[f["blob"]]) for f in description["functions"]]
        self.plain = [value[0] if isinstance(value, tuple) else value for value in loaded]
        self.return_type = spark_type(last["type"])
        self.positions = []
        self.keywords = {}
        for position, name in zip(description["arguments"], description["names"]):
            if name:
                self.keywords[name] = position
            else:
                self.positions.append(position)
        self.all_positions = self.positions + list(self.keywords.values())
        self.function = self._guarded()

    def _guarded(self):
        """All functions as one of the arguments in the order of `all_positions`."""
        from pyspark.util import fail_on_stopiteration

        chain = [fail_on_stopiteration(f) if callable(f) and not isinstance(f, type) else f for f in self.plain]
        count = len(self.positions)
        names = list(self.keywords)

        def first(*values):
            return chain[0](*values[:count], **dict(zip(names, values[count:])))

        head = first if names else chain[0]
        if len(chain) == 1:
            return head

        def chained(*values):
            result = head(*values)
            for function in chain[1:]:
                result = function(result)
            return result

        return chained

    def parameter_count(self):
        """How many arguments the user wrote the function with (for those that may also take the key)."""
        return len(inspect.getfullargspec(self.plain[0]).args)


class Job:
    """What all operators need."""

    def __init__(self, task):
        import pyarrow

        self.task = task
        header = task.header
        self.operator = header["operator"]
        self.settings = header["settings"]
        self.zone = self.settings["spark.sql.session.timeZone"]
        self.input = spark_type(header["input"])
        self.input_types = [field.dataType for field in self.input.fields]
        self.output = spark_type(header["output"])
        with pyarrow.ipc.open_stream(task.blobs[1]) as reader:
            self.output_schema = reader.schema
        self.calls = [Call(self, call) for call in header["calls"]]
        self._waiting = []
        self._waiting_rows = 0
        self._waiting_schema = None

    def flag(self, key, default):
        return self.settings.get(key, str(default)).lower() == "true"

    @property
    def safe(self):
        return self.flag("spark.sql.execution.pandas.convertToArrowArraySafely", False)

    @property
    def columns_by_name(self):
        return self.flag("spark.sql.legacy.execution.pandas.groupedMap.assignColumnsByName", True)

    @property
    def binary_as_bytes(self):
        import pyspark

        # PySpark 4.0 knows no such setting: it always gives bytearrays.
        has_setting = tuple(int(part) for part in pyspark.__version__.split(".")[:2]) >= (4, 1)
        return has_setting and self.flag("spark.sql.execution.pyspark.binaryAsBytes", True)

    def batches(self):
        """The operator's input."""
        return self.task.read_batches()

    def write(self, batch):
        """One batch of output; small ones travel together."""
        if batch.num_rows == 0:
            return
        if self._waiting and batch.schema != self._waiting_schema:
            self.flush()
        self._waiting_schema = batch.schema
        self._waiting.append(batch)
        self._waiting_rows += batch.num_rows
        if self._waiting_rows >= MOST_ROWS:
            self.flush()

    def write_columns(self, arrays):
        import pyarrow

        names = ["_%d" % i for i in range(len(arrays))]
        self.write(pyarrow.RecordBatch.from_arrays(arrays, names))

    def flush(self):
        if self._waiting:
            self.task.write_batches(self._waiting_schema, self._waiting)
            self._waiting = []
            self._waiting_rows = 0

    def groups(self):
        """The parts of one group (record batches without the column of group numbers), for each group."""
        for parts in self.group_parts():
            yield [batch.slice(start, end - start) for batch, start, end in parts]

    def group_parts(self):
        """For each group a list of (batch, first row, end row)."""
        import numpy

        current = None
        parts = []
        for batch in self.batches():
            numbers = batch.column(0).to_numpy(zero_copy_only=False)
            batch = batch.select(list(range(1, batch.num_columns)))
            bounds = [0, *(numpy.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist(), len(numbers)]
            for start, end in zip(bounds, bounds[1:]):
                if end == start:
                    continue
                if parts and numbers[start] != current:
                    yield parts
                    parts = []
                current = numbers[start]
                parts.append((batch, start, end))
        if parts:
            yield parts
