"""What commands show on a terminal."""
import os
import pty
import subprocess
import threading


def _read(controller):
    """Nothing at the end: the kernel says that nobody holds the other side any more."""
    try:
        return os.read(controller, 65536)
    except OSError:
        return b""


def run(command, seconds=300):
    """The exit status, standard output, and what was shown on a terminal as standard error."""
    controller, terminal = pty.openpty()
    shown = []
    reading = threading.Thread(target=lambda: shown.extend(iter(lambda: _read(controller), b"")))
    reading.start()
    try:
        done = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=terminal, timeout=seconds)
    finally:
        os.close(terminal)
        reading.join()
        os.close(controller)
    return done.returncode, done.stdout.decode(), b"".join(shown).decode()
