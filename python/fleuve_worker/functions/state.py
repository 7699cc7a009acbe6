"""Functions over groups that keep state from batch to batch."""

import pickle
import struct

from fleuve_worker.functions import job as jobs
from fleuve_worker.functions import rows, scalar, values

GROUP_STATE = 208
PROCESSOR_PANDAS, PROCESSOR_ROWS = 211, 213


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

    def get(self, key):
        if self.local is not None:
            return self.local.get(key)
        answer, value = self._ask({"op": "get"}, key)
        return bytes(value) if answer["found"] else None

    def put(self, key, value):
        if self.local is not None:
            self.local[key] = value
        else:
            self._ask({"op": "put"}, key, value)

    def remove(self, key):
        if self.local is not None:
            self.local.pop(key, None)
        else:
            self._ask({"op": "remove"}, key)

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


class Variable:
    """One state variable: entries with the times at which they expire (None: never)."""

    def __init__(self, client, kind, name, ttl_ms):
        self.client = client
        self.kind = kind
        self.name = name
        self.ttl_ms = ttl_ms

    @property
    def key(self):
        return key_text(self.kind + ":" + self.name, self.client.plain_key)

    def load(self):
        data = self.client.store.get(self.key)
        return None if data is None else pickle.loads(data)

    def save(self, content):
        key = self.key
        if not content:
            self.client.store.remove(key)
            return
        self.client.store.put(key, pickle.dumps(content, 4))
        if self.ttl_ms:
            self.client.store.timer(self.expiry(), key, b"", space="expiry")

    def expiry(self):
        return self.client.store.timestamp_ms + self.ttl_ms if self.ttl_ms else None

    def alive(self, expiry):
        return expiry is None or expiry > self.client.store.timestamp_ms

    def entry(self, value):
        return (self.expiry(), python_value(value))

    def clear(self):
        self.client.store.remove(self.key)


class ValueState(Variable):
    def exists(self):
        return self.get() is not None

    def get(self):
        kept = self.load()
        return kept[0][1] if kept and self.alive(kept[0][0]) else None

    def update(self, newValue):
        self.save([self.entry(tuple(newValue))])


class ListState(Variable):
    def _items(self):
        return [entry for entry in self.load() or [] if self.alive(entry[0])]

    def exists(self):
        return bool(self._items())

    def get(self):
        return iter([value for _, value in self._items()])

    def put(self, newState):
        self.save([self.entry(tuple(value)) for value in newState])

    def appendValue(self, newState):
        self.save(self._items() + [self.entry(tuple(newState))])

    def appendList(self, newState):
        self.save(self._items() + [self.entry(tuple(value)) for value in newState])


class MapState(Variable):
    def _items(self):
        return {k: entry for k, entry in (self.load() or {}).items() if self.alive(entry[0])}

    def exists(self):
        return bool(self._items())

    def getValue(self, key):
        entry = self._items().get(python_value(tuple(key)))
        return None if entry is None else entry[1]

    def containsKey(self, key):
        return python_value(tuple(key)) in self._items()

    def updateValue(self, key, value):
        items = self._items()
        items[python_value(tuple(key))] = self.entry(tuple(value))
        self.save(items)

    def iterator(self):
        return iter([(key, value) for key, (_, value) in self._items().items()])

    def keys(self):
        return iter(list(self._items()))

    def values(self):
        return iter([value for _, value in self._items().values()])

    def removeKey(self, key):
        items = self._items()
        items.pop(python_value(tuple(key)), None)
        self.save(items)


class Handle:
    """What a stateful processor's `init` gets."""

    def __init__(self, client):
        self.client = client

    def _make(self, kind, label, name, ttl_ms):
        if ttl_ms is not None and self.client.time_mode != "processingtime":
            raise jobs.Refused(
                "STATEFUL_PROCESSOR_CANNOT_ASSIGN_TTL_IN_NO_TTL_MODE"
                if self.client.time_mode == "none"
                else "STATEFUL_PROCESSOR_INCORRECT_TIME_MODE_TO_ASSIGN_TTL",
                "Cannot use TTL for state=%s in timeMode=%s, use TimeMode.ProcessingTime() instead."
                % (name, self.client.time_mode),
            )
        return kind(self.client, label, name, ttl_ms)

    def getValueState(self, stateName, schema, ttlDurationMs=None):
        return self._make(ValueState, "value", stateName, ttlDurationMs)

    def getListState(self, stateName, schema, ttlDurationMs=None):
        return self._make(ListState, "list", stateName, ttlDurationMs)

    def getMapState(self, stateName, userKeySchema, valueSchema, ttlDurationMs=None):
        return self._make(MapState, "map", stateName, ttlDurationMs)

    def registerTimer(self, expiryTimestampMs):
        self.client.register_timer(expiryTimestampMs)

    def deleteTimer(self, expiryTimestampMs):
        self.client.delete_timer(expiryTimestampMs)

    def listTimers(self):
        return iter(self.client.timers())

    def deleteIfExists(self, stateName):
        for label in ("value", "list", "map"):
            Variable(self.client, label, stateName, None).clear()


class Client:
    """Stands in for PySpark's connection to a state server."""

    def __init__(self, store, time_mode, created):
        self.store = store
        self.time_mode = time_mode.lower()
        self.handle_state = created
        self.user_key = ()
        self.plain_key = ()

    def set_handle_state(self, state):
        self.handle_state = state

    def set_implicit_key(self, key):
        self.user_key = key
        self.plain_key = tuple(python_value(value) for value in key)

    def remove_implicit_key(self):
        self.user_key = self.plain_key = ()

    def get_timestamps(self, time_mode):
        mode = time_mode.lower()
        watermark = self.store.watermark_ms if self.store.watermark_ms is not None else 0
        return (
            self.store.timestamp_ms if mode != "none" else -1,
            watermark if mode == "eventtime" else -1,
        )

    def _timers_key(self):
        return key_text("timers", self.plain_key)

    def timers(self):
        """The times of the timers of the present key."""
        data = self.store.get(self._timers_key())
        return pickle.loads(data) if data is not None else []

    def _keep(self, times):
        if times:
            self.store.put(self._timers_key(), pickle.dumps(sorted(times), 4))
        else:
            self.store.remove(self._timers_key())

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
        self.store.timer(int(time_ms), self._timers_key(), pickle.dumps(self.plain_key, 4))

    def delete_timer(self, time_ms):
        times = [time for time in self.timers() if time != time_ms]
        self._keep(times)
        self.store.untimer(int(time_ms), self._timers_key())

    def expired(self, before_ms):
        for time_ms, _, key in self.store.due(before_ms):
            yield pickle.loads(key), time_ms

    def purge(self):
        """Entries whose time is over go."""
        now = self.store.timestamp_ms
        for time_ms, key, _ in self.store.due(now + 1, space="expiry"):
            self.store.untimer(time_ms, key, space="expiry")
            data = self.store.get(key)
            if data is None:
                continue
            content = pickle.loads(data)
            if isinstance(content, dict):
                left = {k: entry for k, entry in content.items() if entry[0] is None or entry[0] > now}
            else:
                left = [entry for entry in content if entry[0] is None or entry[0] > now]
            if not left:
                self.store.remove(key)
            elif len(left) != len(content):
                self.store.put(key, pickle.dumps(left, 4))


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
    by_rows = call.eval_type == PROCESSOR_ROWS
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

    def row_objects(parts):
        from pyspark.sql.types import _create_row

        names = groups.names[groups.first_value :]
        for part in parts:
            columns = [
                values.python_values(job, part.column(i), groups.types[i])
                for i in range(groups.first_value, len(groups.types))
            ]
            for row in zip(*columns):
                yield _create_row(names, row)

    for parts in job.groups():
        if by_rows:
            key, content = groups.python_key(parts[0]), row_objects(parts)
        else:
            key, content = groups.pandas_key(parts[0]), groups.frames(parts)
        write(call.function(client, modes.PROCESS_DATA, key, content))
    write(call.function(client, modes.PROCESS_TIMER, None, iter([])))
    write(call.function(client, modes.COMPLETE, None, iter([])))
    client.purge()
