"""The fixtures of `tests/e2e`, for tests that take long or need programs from elsewhere."""

import importlib.util
import os

spec = importlib.util.spec_from_file_location(
    "e2e_conftest", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e", "conftest.py"))
shared = importlib.util.module_from_spec(spec)
spec.loader.exec_module(shared)

folder = shared.folder
start_server = shared.start_server
server = shared.server
spark = shared.spark
