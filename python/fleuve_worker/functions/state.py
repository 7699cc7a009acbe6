"""Functions over groups that keep state from batch to batch."""

import pickle
import struct

from fleuve_worker.functions import job as jobs
from fleuve_worker.functions import rows, scalar, values

GROUP_STATE = 208
PROCESSOR_ROWS, PROCESSOR_ROWS_INITIAL = 213, 214


def group_state(job):
    if job.calls[0].eval_type == GROUP_STATE:
        apply_with_state(job)
    else:
        transform_with_state(job)


# ---- The store ----


class Store:
    """The state of the query, in the server; of a query without one it lives as long as the task."""

    def __init__(self, job):
        self.task = job.task
        self.local = None if job.task.header["has_store"] else {}
        self.local_timers = {}
        if self.local is None:
            answer, _ = self._ask({"op": "begin"})
            self.timestamp_ms = answer["timestamp_ms"]
            self.watermark_ms = answer["watermark_ms"]
        else:
            import time

            self.timestamp_ms = int(time.time() * 1000)
            self.watermark_ms = None

    def _ask(self, question, *pieces):
        return self.task.ask(question, b"".join(struct.pack("<I", len(piece)) + piece for piece in pieces))

    def get(self, key, space="state"):
        if self.local is not None:
            return self.local.get((space, key))
        answer, value = self._ask({"op": "get", "space": space}, key)
        return bytes(value) if answer["found"] else None

    def put(self, key, value, space="state", updated=1):
        """`updated`: as how many values it counts."""
        if self.local is not None:
            self.local[space, key] = value
        else:
            self._ask({"op": "put", "space": space, "updated": updated}, key, value)

    def remove(self, key, space="state", always=False):
        """`always`: it counts also where nothing was there."""
        if self.local is not None:
            self.local.pop((space, key), None)
        else:
            self._ask({"op": "remove", "space": space, "always": always}, key)

    def listed(self, key):
        """The list of this key in the index."""
        data = self.get(key, "index")
        return pickle.loads(data) if data is not None else []

    def keep_list(self, key, items):
        if items:
            self.put(key, pickle.dumps(items, 4), "index")
        else:
            self.remove(key, "index")

    def count(self, name, by=1):
        """Adds to a metric that progress shows."""
        if self.local is None:
            self._ask({"op": "count", "name": name, "by": by})

    def keep_variable(self, name, kind, schemas, position, ttl):
        """Fails where the checkpoint has a variable of this name that is another one."""
        if self.local is None:
            texts = {part + "_schema": s if isinstance(s, str) else s.json() for part, s in schemas.items()}
            described = {"name": name, "kind": kind, "position": position, "ttl": ttl, "key_schema": "", **texts}
            self._ask({"op": "variable", **described})

    def timer(self, time_ms, key, value, space="timers"):
        if self.local is not None:
            self.local_timers[space, time_ms, key] = value
        else:
            self._ask({"op": "timer", "time": time_ms * 1000, "space": space}, key, value)

    def untimer(self, time_ms, key, space="timers"):
        if self.local is not None:
            self.local_timers.pop((space, time_ms, key), None)
        else:
            self._ask({"op": "untimer", "time": time_ms * 1000, "space": space}, key)

    def due(self, before_ms, space="timers"):
        """(time in ms, key, value) of the timers before a time, by time."""
        if self.local is not None:
            found = [(t, k, v) for (s, t, k), v in self.local_timers.items() if s == space and t < before_ms]
            return sorted(found, key=lambda entry: entry[0])
        answer, data = self._ask({"op": "due", "to": before_ms * 1000 - 1, "space": space})
        data = bytes(data)
        pieces = []
        at = 0
        while at < len(data):
            (size,) = struct.unpack_from("<I", data, at)
            pieces.append(data[at + 4 : at + 4 + size])
            at += 4 + size
        return [(t // 1000, pieces[2 * i], pieces[2 * i + 1]) for i, t in enumerate(answer["times"])]


def key_text(name, key):
    """A key as bytes that are the same for equal keys."""
    return repr((name, tuple(plain_key(value) for value in key))).encode()


def plain_key(value):
    if isinstance(value, float):
        return float("nan") if value != value else value + 0.0
    if isinstance(value, (list, tuple)):
        return tuple(plain_key(item) for item in value)
    return value


def python_value(value):
    """numpy's scalars as Python's own, so that stored state does not depend on numpy."""
    if isinstance(value, (list, tuple)):
        return tuple(python_value(item) for item in value)
    if isinstance(value, dict):
        return {python_value(k): python_value(v) for k, v in value.items()}
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        return value.item()
    return value


class Input(rows.Groups):
    """Groups with their keys in both forms."""

    def python_key(self, part):
        first = part.slice(0, 1)
        return tuple(values.python_values(self.job, first.column(i), self.types[i])[0] for i in range(self.first_value))

    def frames(self, parts):
        return (self.frame(self.table([part])) for part in parts)

    def empty_frame(self):
        import pandas

        return pandas.DataFrame(columns=self.names[self.first_value :])


# ---- applyInPandasWithState ----


def apply_with_state(job):
    from pyspark.sql.streaming.state import GroupState

    call = job.calls[0]
    store = Store(job)
    groups = Input(job)
    timeout = job.task.header["timeout"]
    state_type = jobs.spark_type(job.task.header["state_type"])

    def run(name, pandas_key, frames, timed_out):
        from pyspark.sql import Row

        kept = store.get(name)
        value, deadline = pickle.loads(kept) if kept is not None else (None, -1)
        state = GroupState(
            optionalValue=None if value is None else Row(*value),
            batchProcessingTimeMs=store.timestamp_ms,
            eventTimeWatermarkMs=store.watermark_ms if store.watermark_ms is not None else -1,
            timeoutConf=timeout,
            hasTimedOut=timed_out,
            watermarkPresent=store.watermark_ms is not None,
            defined=value is not None,
            updated=False,
            removed=False,
            timeoutTimestamp=-1,
            keyAsUnsafe=b"",
            valueSchema=state_type,
        )
        for frame in scalar.checked_iterator(call.function(pandas_key, frames, state), "pandas.DataFrame"):
            values.check_pandas(frame, call.return_type, by_name=True, first_columns_only=True)
            rows.write_frame(job, groups.pandas, frame, call.return_type)
        new_deadline = state._timeout_timestamp
        if deadline != new_deadline and deadline >= 0:
            store.untimer(deadline, name)
        if not state._defined and new_deadline < 0:
            if kept is not None:
                store.remove(name)
            return
        if deadline != new_deadline and new_deadline >= 0:
            store.timer(new_deadline, name, pickle.dumps(python_value(pandas_key), 4))
        if state._updated or state._removed or deadline != new_deadline:
            made = tuple(python_value(v) for v in state._value) if state._defined else None
            store.put(name, pickle.dumps((made, new_deadline), 4))

    for parts in job.groups():
        run(key_text("", groups.python_key(parts[0])), groups.pandas_key(parts[0]), groups.frames(parts), False)
    limit = {"ProcessingTimeTimeout": store.timestamp_ms, "EventTimeTimeout": store.watermark_ms}.get(timeout)
    if limit is not None:
        for _, name, key in store.due(limit):
            run(name, pickle.loads(key), iter([groups.empty_frame()]), True)


# ---- transformWithState ----


def field_names(schema):
    """The names of a schema's fields; it is a StructType or a text like `n long, s string`."""
    if not isinstance(schema, str):
        return list(schema.names)
    names = []
    depth, begin, quoted = 0, 0, False
    for at, char in enumerate(schema + ","):
        if char == "`":
            quoted = not quoted
        elif quoted:
            continue
        elif char in "<(":
            depth += 1
        elif char in ">)":
            depth -= 1
        elif char == "," and depth == 0:
            part = schema[begin:at].strip()
            begin = at + 1
            if part.startswith("`"):
                names.append(part[1 : part.index("`", 1)])
            elif part:
                names.append(part.replace(":", " ").split()[0])
    return names


def entry(value, names):
    """A value of a variable as plain Python; it must have the fields of the variable's schema."""
    made = python_value(tuple(value))
    if len(made) != len(names):
        raise ValueError("a value of %d fields for a state of the fields %s" % (len(made), ", ".join(names)))
    return made


def alive(kept, now_ms):
    """False where the time of a value, which stands before it, is over."""
    return kept[0] is None or kept[0] > now_ms


class Variable:
    """One state variable of the present group. Values are kept with the time at which they expire (None: never)."""

    def __init__(self, client, name, ttl_ms):
        self.client = client
        self.store = client.store
        self.name = name
        self.ttl_ms = ttl_ms

    def key(self, *parts):
        return key_text(self.kind + ":" + self.name, (self.client.plain_key, *parts))

    def load(self, key):
        """The expiry and the content; None where there is none, or its time is over."""
        data = self.store.get(key)
        if data is None:
            return None
        kept = pickle.loads(data)
        return kept if alive(kept, self.store.timestamp_ms) else None

    def expiry(self):
        """Of what is written now."""
        return self.store.timestamp_ms + self.ttl_ms if self.ttl_ms else None

    def save(self, key, content, updated=1):
        expiry = self.expiry()
        self.store.put(key, pickle.dumps((expiry, content), 4), updated=updated)
        if expiry is not None:
            self.store.timer(expiry, key, self.purge_note(), space="expiry")

    def purge_note(self):
        """What `Client.purge` needs to know beside the key."""
        return b""


class ValueState(Variable):
    kind = "value"

    def exists(self):
        return self.load(self.key()) is not None

    def get(self):
        kept = self.load(self.key())
        return None if kept is None else kept[1]

    def update(self, newValue):
        self.save(self.key(), entry(newValue, self.value_names))

    def clear(self):
        self.store.remove(self.key(), always=True)


class ListState(Variable):
    """Each value has a time of its own."""

    kind = "list"

    def _items(self):
        data = self.store.get(self.key())
        now = self.store.timestamp_ms
        return [one for one in pickle.loads(data) if alive(one, now)] if data else []

    def _keep(self, kept, new):
        expiry = self.expiry()
        items = kept + [(expiry, entry(value, self.value_names)) for value in new]
        self.store.put(self.key(), pickle.dumps(items, 4), updated=len(items) - len(kept))
        if expiry is not None:
            self.store.timer(expiry, self.key(), b"list", space="expiry")

    def exists(self):
        return bool(self._items())

    def get(self):
        return iter([value for _, value in self._items()])

    def put(self, newState):
        self._keep([], self._some(newState))

    def appendValue(self, newState):
        self._keep(self._items(), [newState])

    def appendList(self, newState):
        self._keep(self._items(), self._some(newState))

    def _some(self, newState):
        new = list(newState)
        if not new:
            raise jobs.Refused(
                "ILLEGAL_STATE_STORE_VALUE.EMPTY_LIST_VALUE",
                "Illegal value provided to the State Store Cannot write empty list values to State Store for StateName %s."
                % self.name,
            )
        return new

    def clear(self):
        self.store.remove(self.key(), always=True)


class MapState(Variable):
    """An entry is a row of the store of its own; which keys there are stands in the index."""

    kind = "map"

    def _keys(self):
        return self.store.listed(self.key())

    def _keep_keys(self, keys):
        self.store.keep_list(self.key(), keys)

    def _entries(self):
        for key in self._keys():
            kept = self.load(self.key(key))
            if kept is not None:
                yield key, kept[1]

    def purge_note(self):
        return pickle.dumps((self.key(), self.present), 4)

    def exists(self):
        return any(True for _ in self._entries())

    def getValue(self, key):
        kept = self.load(self.key(python_value(tuple(key))))
        if kept is None:
            return None
        from pyspark.sql.types import _create_row

        return _create_row(self.value_names, kept[1])

    def containsKey(self, key):
        return self.load(self.key(python_value(tuple(key)))) is not None

    def updateValue(self, key, value):
        self.present = entry(key, self.key_names)
        keys = self._keys()
        if self.present not in keys:
            self._keep_keys([*keys, self.present])
        self.save(self.key(self.present), entry(value, self.value_names))

    def iterator(self):
        return iter(list(self._entries()))

    def keys(self):
        return iter([key for key, _ in self._entries()])

    def values(self):
        return iter([value for _, value in self._entries()])

    def removeKey(self, key):
        gone = python_value(tuple(key))
        self._keep_keys([one for one in self._keys() if one != gone])
        self.store.remove(self.key(gone), always=True)

    def clear(self):
        for key in self._keys():
            self.store.remove(self.key(key))
        self._keep_keys([])


class Handle:
    """What a stateful processor's `init` gets."""

    def __init__(self, client):
        self.client = client

    def _make(self, kind, name, ttl_ms, **schemas):
        client = self.client
        if client.initialized:
            raise jobs.Refused(
                "STATEFUL_PROCESSOR_CANNOT_PERFORM_OPERATION_WITH_INVALID_HANDLE_STATE",
                "Failed to perform stateful processor operation=get_%s_state with invalid handle state=INITIALIZED."
                % kind.kind,
            )
        if ttl_ms is not None and client.time_mode != "processingtime":
            raise jobs.Refused(
                "STATEFUL_PROCESSOR_CANNOT_ASSIGN_TTL_IN_NO_TTL_MODE"
                if client.time_mode == "none"
                else "STATEFUL_PROCESSOR_INCORRECT_TIME_MODE_TO_ASSIGN_TTL",
                "Cannot use TTL for state=%s in timeMode=%s, use TimeMode.ProcessingTime() instead."
                % (name, client.time_mode),
            )
        if ttl_ms is not None and ttl_ms <= 0:
            raise jobs.Refused(
                "STATEFUL_PROCESSOR_TTL_DURATION_MUST_BE_POSITIVE",
                "TTL duration must be greater than zero for State store operation=update on state=%s." % name,
            )
        if not name or name != name.strip() or name == "default":
            raise jobs.Refused(
                "STATE_STORE_CANNOT_USE_COLUMN_FAMILY_WITH_INVALID_NAME",
                "Failed to perform column family operation=create with invalid name=%s. Column family name cannot be empty "
                "or include leading/trailing spaces or use the reserved keyword=default" % name,
            )
        if name.startswith("$"):
            raise jobs.Refused(
                "STATE_STORE_CANNOT_CREATE_COLUMN_FAMILY_WITH_RESERVED_CHARS",
                "Failed to create column family with unsupported starting character and name=%s." % name,
            )
        if name in client.variables:
            raise jobs.Refused(
                "STATEFUL_PROCESSOR_DUPLICATE_STATE_VARIABLE_DEFINED",
                "State variable with name %s has already been defined in the StatefulProcessor." % name,
            )
        variable = kind(client, name, ttl_ms)
        for part, schema in schemas.items():
            setattr(variable, part + "_names", field_names(schema))
        client.variables[name] = variable
        kind_name = kind.kind.capitalize() + "State"
        client.store.keep_variable(name, kind_name, schemas, len(client.variables), ttl_ms is not None)
        with_ttl = "WithTTL" if ttl_ms is not None else ""
        client.store.count("num%sState%sVars" % (kind.kind.capitalize(), with_ttl))
        return variable

    def getValueState(self, stateName, schema, ttlDurationMs=None):
        return self._make(ValueState, stateName, ttlDurationMs, value=schema)

    def getListState(self, stateName, schema, ttlDurationMs=None):
        return self._make(ListState, stateName, ttlDurationMs, value=schema)

    def getMapState(self, stateName, userKeySchema, valueSchema, ttlDurationMs=None):
        return self._make(MapState, stateName, ttlDurationMs, key=userKeySchema, value=valueSchema)

    def registerTimer(self, expiryTimestampMs):
        self.client.register_timer(expiryTimestampMs)

    def deleteTimer(self, expiryTimestampMs):
        self.client.delete_timer(expiryTimestampMs)

    def listTimers(self):
        return iter(self.client.timers())

    def deleteIfExists(self, stateName):
        self.client.store.count("numDeletedStateVars")
        for kind in (ValueState, ListState, MapState):
            kind(self.client, stateName, None).clear()


class Client:
    """Stands in for PySpark's connection to a state server."""

    def __init__(self, store, time_mode, created):
        self.store = store
        self.time_mode = time_mode.lower()
        self.handle_state = created
        self.initialized = False
        self.variables = {}
        self.user_key = ()
        self.plain_key = ()

    def set_handle_state(self, state):
        self.handle_state = state
        self.initialized = True

    def set_implicit_key(self, key):
        self.user_key = key
        self.plain_key = tuple(python_value(value) for value in key)

    def remove_implicit_key(self):
        self.user_key = self.plain_key = ()

    def get_timestamps(self, time_mode):
        if time_mode.lower() == "none":
            return -1, -1
        return self.store.timestamp_ms, self.store.watermark_ms if self.store.watermark_ms is not None else 0

    def _timers_key(self):
        return key_text("timers", self.plain_key)

    def timers(self):
        """The times of the timers of the present key."""
        return self.store.listed(self._timers_key())

    def _keep(self, times):
        self.store.keep_list(self._timers_key(), sorted(times))

    def _check_mode(self):
        if self.time_mode == "none":
            raise jobs.Refused(
                "STATEFUL_PROCESSOR_CANNOT_PERFORM_OPERATION_WITH_INVALID_TIME_MODE",
                "Failed to perform stateful processor operation=timers with invalid timeMode=None",
            )

    def register_timer(self, time_ms):
        self._check_mode()
        times = self.timers()
        if time_ms not in times:
            self._keep([*times, int(time_ms)])
            self.store.count("numRegisteredTimers")
        self.store.timer(int(time_ms), self._timers_key(), pickle.dumps(self.plain_key, 4))

    def delete_timer(self, time_ms):
        times = self.timers()
        if time_ms in times:
            self._keep([time for time in times if time != time_ms])
            self.store.count("numDeletedTimers")
        self.store.untimer(int(time_ms), self._timers_key())

    def expired(self, before_ms):
        for time_ms, _, key in self.store.due(before_ms):
            self.store.count("numExpiredTimers")
            yield pickle.loads(key), time_ms

    def purge(self):
        """Entries whose time is over go."""
        now = self.store.timestamp_ms
        for time_ms, key, note in self.store.due(now + 1, space="expiry"):
            self.store.untimer(time_ms, key, space="expiry")
            data = self.store.get(key)
            if data is None:
                continue
            content = pickle.loads(data)
            if note == b"list":
                left = [one for one in content if alive(one, now)]
                gone = len(content) - len(left)
                if left and gone:
                    self.store.put(key, pickle.dumps(left, 4), updated=0)
            else:
                left = alive(content, now)
                gone = 0 if left else 1
            self.store.count("numValuesRemovedDueToTTLExpiry", gone)
            if left:
                continue
            self.store.remove(key)
            if note and note != b"list":
                index, entry_key = pickle.loads(note)
                self.store.keep_list(index, [one for one in self.store.listed(index) if one != entry_key])


def transform_with_state(job):
    from pyspark.sql.streaming import stateful_processor_util as util
    from pyspark.sql.streaming.stateful_processor_api_client import StatefulProcessorHandleState

    call = job.calls[0]
    store = Store(job)
    groups = Input(job)
    client = Client(store, job.task.header["timeout"], StatefulProcessorHandleState.CREATED)
    # The wrapper around the user's processor finds these two by name.
    util.StatefulProcessorHandle = Handle
    util.ExpiredTimerIterator = lambda client, before_ms: client.expired(before_ms)
    modes = util.TransformWithStateInPandasFuncMode
    by_rows = call.eval_type in (PROCESSOR_ROWS, PROCESSOR_ROWS_INITIAL)
    convert = values.row_result_converter(call.return_type) if by_rows else None

    def write(results):
        if not by_rows:
            for frame in results:
                values.check_pandas(frame, call.return_type, by_name=True, first_columns_only=True)
                rows.write_frame(job, groups.pandas, frame, call.return_type)
            return
        from pyspark.sql.pandas.types import to_arrow_type

        made = [convert(row) for row in results]
        if made:
            job.write_columns(
                [
                    values.arrow_of_internal([row[i] for row in made], field.dataType, to_arrow_type(field.dataType))
                    for i, field in enumerate(call.return_type.fields)
                ]
            )

    def row_objects(parts, first, end):
        from pyspark.sql.types import _create_row

        names = groups.names[first:end]
        for part in parts:
            columns = [values.python_values(job, part.column(i), groups.types[i]) for i in range(first, end)]
            for row in zip(*columns):
                yield _create_row(names, row)

    def content(parts, first, end):
        if by_rows:
            return row_objects(parts, first, end)
        return (groups.frame(groups.table([part], first, end), first, end) for part in parts)

    first, end = groups.first_value, len(groups.types)
    # Of two sides: behind the keys the side, the columns of the rows, the columns of the initial state.
    two_sides = job.task.header["has_initial_state"]
    middle = first + 1 + job.task.header["left_arguments"] if two_sides else end
    for parts in job.groups():
        key = groups.python_key(parts[0]) if by_rows else groups.pandas_key(parts[0])
        if not two_sides:
            write(call.function(client, modes.PROCESS_DATA, key, content(parts, first, end)))
            continue
        left, right = rows.sides_of(parts, first)
        initial = content(right, middle, end) if right else None
        write(call.function(client, modes.PROCESS_DATA, key, content(left, first + 1, middle), initial))
    write(call.function(client, modes.PROCESS_TIMER, None, iter([])))
    write(call.function(client, modes.COMPLETE, None, iter([])))
    client.purge()
