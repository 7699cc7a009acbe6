"""The worker's main loop: reads tasks from the socket it was started with and runs them one after the other.

    python fleuve_worker FD [FOLDER ...]      FOLDER: put before the interpreter's own module path
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# Started as a folder: the package's parent stands in for the folder itself.
sys.path[0] = os.path.dirname(HERE)

from fleuve_worker import frames, guard, tasks  # noqa: E402


def main():
    socket = frames.Socket(int(sys.argv[1]))
    sys.path[1:1] = sys.argv[2:]
    sys.argv[1:] = []
    guard.watch(socket.descriptor)
    while True:
        if not socket.wait(guard.IDLE_SECONDS):
            return
        frame = socket.receive()
        if frame is None:
            return
        tasks.run(socket, frame)


if __name__ == "__main__":
    main()
