"""AUTO CDC flows as the message that PySpark 4.2 sends for them; earlier versions do not know its fields."""

import pyspark.sql.connect.proto as pb2
from pyspark.sql.connect import functions as F

# Fields of DefineFlow.AutoCdcFlowDetails, and its place in DefineFlow.
_SOURCE, _KEYS, _SEQUENCE, _DELETES, _TRUNCATES = 1, 2, 3, 6, 7
_COLUMNS, _EXCEPT_COLUMNS, _SCD_TYPE = 8, 9, 10
_IGNORE_NULL, _IGNORE_NULL_EXCEPT = 14, 15
_DETAILS = 10


def _varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _bytes(field, data):
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _number(field, value):
    return _varint(field << 3) + _varint(value)


def _column(value):
    return F.col(value) if isinstance(value, str) else value


def _expression(value):
    return F.expr(value) if isinstance(value, str) else value


def define(
    registry,
    location,
    target,
    source,
    keys,
    sequence_by,
    apply_as_deletes=None,
    apply_as_truncates=None,
    column_list=None,
    except_column_list=None,
    stored_as_scd_type=1,
    ignore_null_updates=False,
    ignore_null_updates_column_list=None,
    ignore_null_updates_except_column_list=None,
    track_history_column_list=None,
    track_history_except_column_list=None,
    name=None,
    once=False,
):
    """Strings in lists are columns, other strings are SQL expressions. The flow is named as its target."""
    if str(stored_as_scd_type) not in ("1", "2"):
        raise ValueError("stored_as_scd_type is 1 or 2, not %r" % (stored_as_scd_type,))
    for unserved, value in (
        ("track_history_column_list", track_history_column_list),
        ("track_history_except_column_list", track_history_except_column_list),
    ):
        if value:
            raise NotImplementedError("%s has no place in this client's messages; define the flow in SQL: TRACK HISTORY ON" % unserved)
    client = registry.client
    details = _bytes(_SOURCE, source.encode())

    def add(field, column):
        return _bytes(field, column.to_plan(client).SerializeToString())

    for key in keys:
        details += add(_KEYS, _column(key))
    details += add(_SEQUENCE, _expression(sequence_by))
    if apply_as_deletes is not None:
        details += add(_DELETES, _expression(apply_as_deletes))
    if apply_as_truncates is not None:
        details += add(_TRUNCATES, _expression(apply_as_truncates))
    for field, columns in (
        (_COLUMNS, column_list),
        (_EXCEPT_COLUMNS, except_column_list),
        (_IGNORE_NULL, ignore_null_updates_column_list),
        (_IGNORE_NULL_EXCEPT, ignore_null_updates_except_column_list),
    ):
        for column in columns or []:
            details += add(field, _column(column))
    if ignore_null_updates and not (ignore_null_updates_column_list or ignore_null_updates_except_column_list):
        # Every column but the keys, whose values never change.
        for key in keys:
            details += add(_IGNORE_NULL_EXCEPT, _column(key))
    details += _number(_SCD_TYPE, int(stored_as_scd_type))
    command = pb2.PipelineCommand()
    flow = command.define_flow
    flow.dataflow_graph_id = registry.graph_id
    flow.flow_name = name or target
    flow.target_dataset_name = target
    flow.source_code_location.file_name = location.filename
    if location.line_number is not None:
        flow.source_code_location.line_number = location.line_number
    if once:
        flow.once = True
    flow.MergeFromString(_bytes(_DETAILS, details))
    registry.send(command)
