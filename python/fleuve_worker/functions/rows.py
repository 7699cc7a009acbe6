"""Functions over all rows and over groups of rows."""

from fleuve_worker.functions import scalar, values

MAP_PANDAS, MAP_ARROW = 205, 207
GROUP_PANDAS, GROUP_ARROW, GROUP_ARROW_ITER, GROUP_PANDAS_ITER = 201, 209, 215, 216
COGROUP_PANDAS, COGROUP_ARROW = 206, 210
AGGREGATE_PANDAS = (202, 203)
AGGREGATE_ARROW = (252, 253)
AGGREGATE_PANDAS_ITER, AGGREGATE_ARROW_ITER = 217, 254


def map_rows(job):
    call = job.calls[0]
    if call.eval_type == MAP_ARROW:
        map_arrow(job, call)
        return
    import pandas

    pandas_values = values.Pandas(job)
    names = job.input.names
    frames = (pandas_values.frame(batch, names, job.input_types) for batch in job.batches())
    for frame in scalar.checked_iterator(call.function(frames), "pandas.DataFrame"):
        if not isinstance(frame, pandas.DataFrame):
            raise scalar.wrong_element("pandas.DataFrame", frame)
        values.check_pandas(frame, call.return_type, by_name=True, first_columns_only=True)
        write_frame(job, pandas_values, frame, call.return_type)


def map_arrow(job, call):
    import pyarrow

    for batch in scalar.checked_iterator(call.function(job.batches()), "pyarrow.RecordBatch"):
        if not isinstance(batch, pyarrow.RecordBatch):
            raise scalar.wrong_element("pyarrow.RecordBatch", batch)
        job.write(batch)


def write_frame(job, pandas_values, frame, data_type):
    if len(frame) == 0:
        return
    if not data_type.fields:
        job.write(empty_columns(len(frame)))
        return
    job.write_columns(pandas_values.struct_arrays(frame, data_type))


def empty_columns(count):
    import pyarrow

    array = pyarrow.array([{}] * count, pyarrow.struct([]))
    return pyarrow.RecordBatch.from_struct_array(array)


class Groups:
    """Groups of a job whose input is keys, then values."""

    def __init__(self, job):
        self.job = job
        call = job.calls[0]
        self.first_value = len(job.input_types) - 1 - count_arguments(job)
        self.types = job.input_types[1:]
        self.names = job.input.names[1:]
        self.pandas = values.Pandas(job)
        self.takes_key = call.parameter_count()
        self.whole = None
        self.judged = None

    def pandas_key(self, part):
        first = part.slice(0, 1)
        return tuple(
            self.pandas.series(first.column(i), self.types[i])[0] for i in range(self.first_value)
        )

    def arrow_key(self, part):
        return tuple(part.column(i)[0] for i in range(self.first_value))

    def table(self, parts, start=None, end=None):
        """The values of a group as an Arrow table."""
        import pyarrow

        start = self.first_value if start is None else start
        end = len(self.types) if end is None else end
        columns = list(range(start, end))
        return pyarrow.Table.from_batches([part.select(columns) for part in parts])

    def group_frame(self, parts):
        """The DataFrame of a group. Groups of one batch are cut out of one DataFrame where that makes no difference."""
        batch, first, last = parts[0]
        if len(parts) > 1 or not self.is_plain(batch):
            return self.frame(self.table([b.slice(s, e - s) for b, s, e in parts]))
        if self.whole is None or self.whole[0] is not batch:
            self.whole = (batch, self.frame(self.table([batch])))
        return self.whole[1].iloc[first:last].reset_index(drop=True)

    def is_plain(self, batch):
        """True where no column's pandas type depends on whether a value is missing."""
        import pyarrow

        if self.judged is None or self.judged[0] is not batch:
            kinds = pyarrow.types
            plain = all(
                kinds.is_floating(column.type)
                or kinds.is_string(column.type)
                or kinds.is_timestamp(column.type)
                or (column.null_count == 0 and (kinds.is_integer(column.type) or kinds.is_boolean(column.type)))
                for column in batch.columns[self.first_value :]
            )
            self.judged = (batch, plain)
        return self.judged[1]

    def frame(self, table, start=None, end=None):
        start = self.first_value if start is None else start
        end = len(self.types) if end is None else end
        return self.pandas.frame(table, self.names[start:end], self.types[start:end])


def count_arguments(job):
    """Columns of the input that are arguments (and, of two sides, the side); before them stand the keys."""
    call = job.calls[0]
    extra = 1 if job.operator == "cogroup_map" or job.task.header.get("has_initial_state") else 0
    return len(call.all_positions) + extra


def map_groups(job):
    import pyarrow

    call = job.calls[0]
    groups = Groups(job)
    with_key = groups.takes_key >= 2
    by_name = job.columns_by_name
    for pieces in job.group_parts():
        if call.eval_type == GROUP_PANDAS:
            key = (groups.pandas_key(pieces[0][0].slice(pieces[0][1], 1)),) if with_key else ()
            frame = call.function(*key, groups.group_frame(pieces))
            values.check_pandas(frame, call.return_type, by_name, first_columns_only=False)
            write_frame(job, groups.pandas, frame, call.return_type)
            continue
        parts = [batch.slice(start, end - start) for batch, start, end in pieces]
        if call.eval_type == GROUP_PANDAS_ITER:
            key = (groups.pandas_key(parts[0]),) if with_key else ()
            results = call.function(*key, (groups.frame(groups.table([part])) for part in parts))
            for frame in results:
                values.check_pandas(frame, call.return_type, by_name, first_columns_only=False)
                write_frame(job, groups.pandas, frame, call.return_type)
            continue
        key = (groups.arrow_key(parts[0]),) if with_key else ()
        if call.eval_type == GROUP_ARROW:
            kind = pyarrow.Table
            results = [call.function(*key, groups.table(parts))]
        else:
            kind = pyarrow.RecordBatch
            batches = (part for table in [groups.table(parts)] for part in table.to_batches())
            results = call.function(*key, batches)
        for result in results:
            write_arrow(job, result, kind, call.return_type, by_name)


def write_arrow(job, result, kind, data_type, by_name):
    import pyarrow

    columns = values.check_arrow(result, kind, data_type, by_name)
    table = pyarrow.table(columns, names=["_%d" % i for i in range(len(columns))]) if columns else None
    for batch in table.to_batches() if table is not None else ():
        job.write(batch)


def sides_of(parts, side):
    """The parts of the left and of the right side of a group sorted by the column `side` (0 or 1)."""
    sides = ([], [])
    for part in parts:
        # At most one change in each part.
        marks = part.column(side).to_pylist()
        change = marks.index(1) if 1 in marks else len(marks)
        if change > 0:
            sides[0].append(part.slice(0, change))
        if change < len(marks):
            sides[1].append(part.slice(change))
    return sides


def map_cogroups(job):
    import pyarrow

    call = job.calls[0]
    groups = Groups(job)
    # Behind the keys: the side, the left columns, the right columns.
    side = groups.first_value
    middle = side + 1 + job.task.header["left_arguments"]
    end = len(groups.types)
    with_key = groups.takes_key >= 3
    is_pandas = call.eval_type == COGROUP_PANDAS
    for parts in job.groups():
        sides = sides_of(parts, side)
        empty = [parts[0].slice(0, 0)]
        left = groups.table(sides[0] or empty, side + 1, middle)
        right = groups.table(sides[1] or empty, middle, end)
        if is_pandas:
            key = (groups.pandas_key(parts[0]),) if with_key else ()
            result = call.function(*key, groups.frame(left, side + 1, middle), groups.frame(right, middle, end))
            values.check_pandas(result, call.return_type, job.columns_by_name, first_columns_only=False)
            write_frame(job, groups.pandas, result, call.return_type)
        else:
            key = (groups.arrow_key(parts[0]),) if with_key else ()
            result = call.function(*key, left, right)
            write_arrow(job, result, pyarrow.Table, call.return_type, job.columns_by_name)


class Aggregator:
    """One aggregate function over the rows of a group."""

    def __init__(self, job, call, first_argument):
        from pyspark.sql.pandas.types import to_arrow_type

        self.call = call
        self.job = job
        self.positions = [first_argument + p for p in call.all_positions]
        self.types = job.input_types
        self.pandas = values.Pandas(job)
        self.arrow_type = to_arrow_type(call.return_type)
        self.is_pandas = call.eval_type in AGGREGATE_PANDAS or call.eval_type == AGGREGATE_PANDAS_ITER
        self.iterates = call.eval_type in (AGGREGATE_PANDAS_ITER, AGGREGATE_ARROW_ITER)

    def arguments(self, table):
        """Series or arrays of a group; `table` has all columns of the input but the group's number."""
        columns = [table.column(p) for p in self.positions]
        if not self.is_pandas:
            return [values.one_array(column) for column in columns]
        return [
            self.pandas.series(column, self.types[p + 1]) for column, p in zip(columns, self.positions)
        ]

    def value(self, parts):
        import pyarrow

        if self.iterates:
            pieces = (self.arguments(part) for part in parts)
            return self.call.function(piece[0] if len(piece) == 1 else tuple(piece) for piece in pieces)
        return self.call.function(*self.arguments(pyarrow.Table.from_batches(parts)))

    def array(self, results):
        """The Arrow array of the results of several groups."""
        import pandas
        import pyarrow

        if self.is_pandas:
            arrays = [
                self.pandas.array(pandas.Series([result]), self.call.return_type, self.arrow_type) for result in results
            ]
        else:
            arrays = [scalar.arrow_array(pyarrow.array([result]), self.arrow_type) for result in results]
        return pyarrow.concat_arrays(arrays) if arrays else pyarrow.array([], self.arrow_type)


def aggregate_groups(job):
    import pyarrow

    arguments = len({p for call in job.calls for p in call.all_positions})
    keys = len(job.input_types) - 1 - arguments
    aggregators = [Aggregator(job, call, keys) for call in job.calls]
    key_rows = []
    results = [[] for _ in aggregators]

    def flush():
        if not key_rows:
            return
        table = pyarrow.Table.from_batches(key_rows)
        columns = [values.one_array(table.column(i)) for i in range(keys)]
        columns += [aggregator.array(made) for aggregator, made in zip(aggregators, results)]
        job.write_columns(columns)
        key_rows.clear()
        for made in results:
            made.clear()

    for parts in job.groups():
        for aggregator, made in zip(aggregators, results):
            made.append(aggregator.value(parts))
        key_rows.append(parts[0].slice(0, 1))
        if len(key_rows) >= 1000:
            flush()
    flush()


def windows(job):
    """Aggregates over the frame of each row, or over its whole group."""
    import pyarrow

    framed = job.task.header["framed"]
    used = {p for call in job.calls for p in call.all_positions}
    used.update(p + i for p in framed if p >= 0 for i in (0, 1))
    keys = len(job.input_types) - 1 - len(used)
    aggregators = [Aggregator(job, call, keys) for call in job.calls]
    for parts in job.groups():
        table = pyarrow.Table.from_batches(parts)
        columns = []
        for aggregator, position in zip(aggregators, framed):
            if position < 0:
                one = aggregator.array([aggregator.value(parts)])
                columns.append(pyarrow.concat_arrays([one] * table.num_rows) if table.num_rows > 1 else one)
                continue
            arguments = aggregator.arguments(table)
            ends = table.column(keys + position).to_pylist()
            counts = table.column(keys + position + 1).to_pylist()
            results = []
            for end, count in zip(ends, counts):
                if aggregator.is_pandas:
                    cut = [series.iloc[end - count : end] for series in arguments]
                else:
                    cut = [array.slice(end - count, count) for array in arguments]
                results.append(aggregator.call.function(*cut))
            columns.append(aggregator.array(results))
        job.write_columns(columns)
