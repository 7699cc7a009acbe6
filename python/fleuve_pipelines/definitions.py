"""What `pyspark.pipelines` gets beside its own definitions: expectations, flows that run once, AUTO CDC."""

import functools
import inspect
import os

import pyspark.pipelines as pipelines
from pyspark.pipelines import api
from pyspark.pipelines.graph_element_registry import get_active_graph_element_registry
from pyspark.pipelines.source_code_location import SourceCodeLocation

from fleuve_pipelines import auto_cdc
from fleuve_pipelines.registry import amended

_PREFIX = "fleuve.expectations."
_HERE = os.path.dirname(os.path.abspath(__file__))
_PYSPARK = os.path.dirname(os.path.abspath(pipelines.__file__))


def caller_location(stacklevel=0):
    """The line of the user's file: the first one outside of PySpark's package and this one."""
    frame = inspect.currentframe()
    while frame is not None and os.path.dirname(os.path.abspath(frame.f_code.co_filename)) in (_HERE, _PYSPARK):
        frame = frame.f_back
    if frame is None:
        return SourceCodeLocation(filename="", line_number=None)
    return SourceCodeLocation(filename=frame.f_code.co_filename, line_number=frame.f_lineno)


# ---- expectations: a function carries them until it is made a dataset


def _expecting(rules, action):
    def decorate(function):
        known = getattr(function, "_fleuve_expectations", [])
        function._fleuve_expectations = [(name, condition, action) for name, condition in rules.items()] + known
        return function

    return decorate


def expect(name, inv):
    """Counts rows for which `inv` is not true; they are kept."""
    return _expecting({name: inv}, "warn")


def expect_or_drop(name, inv):
    """Leaves rows out for which `inv` is not true."""
    return _expecting({name: inv}, "drop")


def expect_or_fail(name, inv):
    """Fails the flow on a row for which `inv` is not true."""
    return _expecting({name: inv}, "fail")


def expect_all(expectations):
    return _expecting(expectations, "warn")


def expect_all_or_drop(expectations):
    return _expecting(expectations, "drop")


def expect_all_or_fail(expectations):
    return _expecting(expectations, "fail")


def properties_of(rules):
    """Expectations as the table properties in which they travel."""
    properties = {}
    for name, condition, action in rules:
        if not isinstance(name, str) or not isinstance(condition, str):
            raise TypeError("an expectation is a name and a SQL condition, both strings")
        if _PREFIX + name in properties:
            raise ValueError("two expectations have the name %r" % name)
        properties[_PREFIX + name] = condition
        properties[_PREFIX + name + ".action"] = action
    return properties


def define_with_expectations(define, function):
    """Calls `define(function)`; its dataset gets what `function` carries."""
    properties = properties_of(getattr(function, "_fleuve_expectations", []))
    if not properties:
        return define(function)

    def add(command):
        if command.HasField("define_output"):
            command.define_output.table_details.table_properties.update(properties)

    with amended(add):
        return define(function)


def _dataset(original):
    """A decorator of PySpark that makes a dataset, with the expectations of the function that it is put on."""

    @functools.wraps(original)
    def decorator(query_function=None, **arguments):
        if query_function is not None:
            return define_with_expectations(original, query_function)
        inner = original(**arguments)
        return lambda function: define_with_expectations(inner, function)

    return decorator


# ---- flows


def append_flow(*, target, name=None, spark_conf=None, once=False):
    """As PySpark's; `once`: a batch query that runs one time, and again after a full refresh."""
    inner = _append_flow(target=target, name=name, spark_conf=spark_conf or {})
    if not once:
        return inner

    def define(function):
        def add(command):
            if command.HasField("define_flow"):
                command.define_flow.once = True

        with amended(add):
            return inner(function)

    return define


def create_streaming_table(name, *, expect_all=None, expect_all_or_drop=None, expect_all_or_fail=None, table_properties=None, **rest):
    """As PySpark's, with expectations."""
    rules = [(n, c, "warn") for n, c in (expect_all or {}).items()]
    rules += [(n, c, "drop") for n, c in (expect_all_or_drop or {}).items()]
    rules += [(n, c, "fail") for n, c in (expect_all_or_fail or {}).items()]
    properties = {**(table_properties or {}), **properties_of(rules)}
    return _create_streaming_table(name, table_properties=properties, **rest)


def create_auto_cdc_flow(target, source, keys, sequence_by, **rules):
    """Applies the change events of `source` to `target`; see `auto_cdc.define` for the rest of its parameters."""
    auto_cdc.define(get_active_graph_element_registry(), caller_location(), target, source, keys, sequence_by, **rules)


_append_flow = api.append_flow
_create_streaming_table = api.create_streaming_table


def install():
    api.get_caller_source_code_location = caller_location
    additions = {name: _dataset(getattr(api, name)) for name in ("table", "materialized_view", "temporary_view")}
    for function in (
        expect,
        expect_or_drop,
        expect_or_fail,
        expect_all,
        expect_all_or_drop,
        expect_all_or_fail,
        append_flow,
        create_streaming_table,
        create_auto_cdc_flow,
    ):
        additions[function.__name__] = function
    for name, function in additions.items():
        setattr(pipelines, name, function)
        setattr(api, name, function)
        if name not in pipelines.__all__:
            pipelines.__all__.append(name)
