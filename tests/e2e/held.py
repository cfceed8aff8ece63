"""Suspends one thread of a process, as a debugger does: the others go on."""
import contextlib
import ctypes
import os

_PTRACE_ATTACH, _PTRACE_DETACH = 16, 17
_WAIT_ALL = 0x40000000  # __WALL: also a thread.
_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def _ptrace(request, thread):
    if _libc.ptrace(request, thread, None, None) != 0:
        raise OSError(ctypes.get_errno(), "ptrace")


@contextlib.contextmanager
def held(thread):
    """`thread` runs again when this ends, if it still exists. Use it in one thread of the test only."""
    _ptrace(_PTRACE_ATTACH, thread)
    os.waitpid(thread, _WAIT_ALL)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            _ptrace(_PTRACE_DETACH, thread)
