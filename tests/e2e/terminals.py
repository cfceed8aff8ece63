"""What commands show on a terminal."""
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import threading

from cluster import eventually
from host import BINARY


def _read(controller):
    """Nothing at the end: the kernel says that nobody holds the other side any more."""
    try:
        return os.read(controller, 65536)
    except OSError:
        return b""


class Terminal:
    """`side` is the descriptor for a program. Whoever uses it closes it after the program has ended."""

    def __init__(self):
        self._controller, self.side = pty.openpty()
        self._pieces = []
        self._reading = threading.Thread(target=self._read_all)
        self._reading.start()

    def _read_all(self):
        for piece in iter(lambda: _read(self._controller), b""):
            self._pieces.append(piece)

    def shown(self):
        """All that has been shown so far."""
        return b"".join(self._pieces).decode(errors="replace")

    def press(self, keys):
        os.write(self._controller, keys.encode())

    def close(self):
        os.close(self.side)
        self._reading.join()
        os.close(self._controller)


def run(command, seconds=300, meanwhile=lambda shown: None):
    """The exit status, standard output, and what was shown on a terminal as standard error. `meanwhile` is called while the command runs, with
    a function that returns what has been shown so far."""
    terminal = Terminal()
    try:
        with subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=terminal.side) as process:
            try:
                meanwhile(terminal.shown)
                out = process.communicate(timeout=seconds)[0]
            except BaseException:
                process.kill()
                raise
    finally:
        terminal.close()
    return process.returncode, out.decode(), terminal.shown()


class Screen:
    """A terminal with `hangar top` in it."""

    def __init__(self, *arguments, lines=24, columns=140):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.process = subprocess.Popen([str(BINARY), "top", *arguments], stdin=slave, stdout=slave, stderr=slave)
        self.seen = ""

    def drawn(self):
        """The last screen, without the sequence that begins it."""
        while select.select([self.master], [], [], 0)[0]:
            self.seen += os.read(self.master, 65536).decode()
        return self.seen.rsplit("\x1b[H", 1)[-1]

    def shows(self, text, seconds=60):
        eventually(lambda: text in self.drawn(), f"the screen shows {text!r}", seconds)

    def marked(self):
        drawn = self.drawn()
        return drawn.partition("\x1b[7m")[2].partition("\x1b[0m")[0]

    def press(self, keys):
        os.write(self.master, keys.encode())

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)
