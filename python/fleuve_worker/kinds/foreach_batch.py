"""foreachBatch: the function stays here for the length of the query and gets one batch after the other.

    header   url: the server, with session, user and run in it
    blobs    the pickled function of (DataFrame, batch id)
    asks     {} whenever it is ready; the answer is {"frame": id, "batch": number} or {"stop": true}
"""

import os


def run(task):
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
    from pyspark.sql.connect.session import SparkSession

    session = connect(SparkSession, task.header["url"])
    try:
        # The function is read with the session in place: it may hold DataFrames and DeltaTables of the same session.
        function = task.unpickle()
        while True:
            answer, _ = task.ask({})
            if answer.get("stop"):
                break
            function(frame_of(session, answer["frame"]), answer["batch"])
    finally:
        leave(SparkSession, session)


def connect(kind, url):
    """A client of the session that started the query."""
    session = kind.builder.remote(url).create()
    # The session belongs to the user's program: this client never ends it, whatever the function calls.
    session.client.release_session = lambda *_, **__: None
    return session


def frame_of(session, frame):
    make = getattr(session, "_create_remote_dataframe", None)
    if make is not None:
        return make(frame)
    from pyspark.sql.connect.dataframe import DataFrame
    from pyspark.sql.connect.plan import CachedRemoteRelation

    return DataFrame(CachedRemoteRelation(frame, spark_session=session), session)


def leave(kind, session):
    """Closes the connection, so that the next task of this process starts afresh."""
    try:
        session.client.close()
    except Exception:
        pass
    for name in ("_default_session", "_active_session"):
        holder = getattr(kind, name, None)
        if name == "_active_session" and holder is not None:
            holder.session = None
        elif holder is session:
            kind._default_session = None
