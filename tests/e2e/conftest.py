"""What the end-to-end tests share: a server of their own, started as a user would, and a PySpark session on it."""

import os
import re
import shutil
import signal
import subprocess
import tempfile

import pytest

FLEUVE = os.environ.get("FLEUVE") or os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "..", "build", "release", "fleuve"
)


# Sessions are kept: PySpark closes one that is collected, and where that happens while one of its threads hands work to
# its pool, it waits for itself for ever.
SESSIONS = []


def pytest_addoption(parser):
    parser.addoption("--kills", type=int, default=20, help="how often the kill test kills the process")


class Server:
    """A `fleuve server` process."""

    def __init__(self, folder, *flags, env=None):
        self.folder = folder
        self.sessions = []
        self.log_path = os.path.join(folder, "server.log")
        self.log = open(self.log_path, "a")
        self.process = subprocess.Popen(
            [FLEUVE, "server", "--port", "0", "--warehouse", os.path.join(folder, "warehouse"), *flags],
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            env={**os.environ, **(env or {})},
        )
        line = self.process.stdout.readline()
        found = re.search(r"listening on (sc://\S+)", line)
        assert found, "the server did not start: " + open(self.log_path).read()[-2000:]
        self.url = found[1]

    @property
    def pid(self):
        return self.process.pid

    def session(self):
        """A PySpark session that gives up on a server that was killed.

        By default every call, also those that PySpark makes in the background, is tried again for ten minutes; closing or
        collecting any session then waits for them, under a lock that all sessions of the process share. Nor does it take
        over what gRPC remembers of an earlier server that had the same port.
        """
        process = self.process
        from pyspark.sql.connect.client import DefaultChannelBuilder
        from pyspark.sql.connect.client.retries import DefaultPolicy
        from pyspark.sql.connect.session import SparkSession

        class WhileItLives(DefaultPolicy):
            def can_retry(self, exception):
                return process.poll() is None and super().can_retry(exception)

        # As `builder.remote` does: with it the functions of the package that has the JVM's parts too do not ask for a JVM.
        os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
        channel = DefaultChannelBuilder(self.url, [("grpc.use_local_subchannel_pool", 1)])
        session = SparkSession.builder.channelBuilder(channel).create()
        session.client.set_retry_policies([WhileItLives(max_retries=3)])
        # PySpark's functions ask the current session, which is else the first one that still stands.
        SparkSession._default_session = SparkSession._active_session.session = session
        SESSIONS.append(session)
        self.sessions.append(session)
        return session

    def close_sessions(self):
        """Or functions of later tests would ask the server of an earlier one: PySpark has a current session."""
        for session in self.sessions:
            session.release_session_on_close = self.process.poll() is None
            session.stop()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """Asks the server to end; returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(10)


@pytest.fixture
def folder():
    path = tempfile.mkdtemp(prefix="fleuve-e2e-")
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def start_server(folder):
    servers = []

    def start(*flags, env=None, where=None):
        server = Server(where or folder, *flags, env=env)
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.close_sessions()
        if server.process.poll() is None:
            server.kill()


@pytest.fixture
def server(start_server):
    return start_server()


@pytest.fixture
def spark(server):
    session = server.session()
    yield session
    session.stop()


def pytest_sessionfinish(session, exitstatus):
    session.config.final_status = int(exitstatus)


def pytest_unconfigure(config):
    # PySpark's own threads try for minutes to reach servers that a test has ended: do not wait for them.
    import sys

    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(getattr(config, "final_status", 1))
