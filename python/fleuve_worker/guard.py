"""Ends this process when the server is gone, whatever user code does meanwhile."""

import os
import select
import threading

# A worker without a task leaves after this time.
IDLE_SECONDS = 60


def watch(descriptor):
    def wait():
        poll = select.poll()
        poll.register(descriptor, 0)  # only the hang-up is told
        while not poll.poll():
            pass
        os._exit(0)

    threading.Thread(target=wait, name="fleuve-guard", daemon=True).start()
