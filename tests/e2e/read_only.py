#!/usr/bin/env python3
"""Runs a command whose disk can become read-only while it runs, as an SD card at the end of its life does.

    read_only.py DIRECTORY SWITCH COMMAND...

While the file SWITCH exists, the command and its processes cannot open a file below DIRECTORY for writing nor write to one at an
offset: both fail with EROFS. No file system can be made read-only that has a file open for writing, so another process answers these
system calls (seccomp's notifications). The command has this process's number.
"""
import contextlib
import ctypes
import errno
import fcntl
import os
import pathlib
import select
import signal
import socket
import sys

ALLOW = 0x7FFF0000
NOTIFY = 0x7FC00000
MASKED_EQUAL = 7
CONTINUE = 1
PR_SET_PDEATHSIG = 1
# SECCOMP_IOCTL_NOTIF_RECV and _SEND. libseccomp's functions for them work only in the process that made the filter.
RECEIVE = 0xC0502100
SEND = 0xC0182101


class Comparison(ctypes.Structure):
    _fields_ = [("argument", ctypes.c_uint), ("operator", ctypes.c_int), ("value", ctypes.c_uint64), ("other", ctypes.c_uint64)]


class Request(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint64), ("pid", ctypes.c_uint32), ("flags", ctypes.c_uint32), ("call", ctypes.c_int), ("architecture", ctypes.c_uint32),
                ("instruction", ctypes.c_uint64), ("arguments", ctypes.c_uint64 * 6)]


class Answer(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint64), ("value", ctypes.c_int64), ("error", ctypes.c_int32), ("flags", ctypes.c_uint32)]


library = ctypes.CDLL("libseccomp.so.2", use_errno=True)
library.seccomp_init.restype = ctypes.c_void_p
OPEN, WRITE = (library.seccomp_syscall_resolve_name(name) for name in (b"openat", b"pwrite64"))


def ask_before_writes():
    """From here on, whoever has the descriptor that it returns answers this process's calls that write."""
    context = ctypes.c_void_p(library.seccomp_init(ALLOW))

    def ask(call, *comparisons):
        array = (Comparison * len(comparisons))(*comparisons)
        if library.seccomp_rule_add_array(context, NOTIFY, call, len(comparisons), array) != 0:
            sys.exit("error: a system call cannot be watched")
    for mode in (os.O_WRONLY, os.O_RDWR):
        ask(OPEN, Comparison(2, MASKED_EQUAL, os.O_ACCMODE, mode))
    ask(WRITE)
    if library.seccomp_load(context) != 0:
        sys.exit("error: the filter cannot be loaded")
    return library.seccomp_notify_fd(context)


def file_of(request):
    """What the call writes to; a process that is gone writes nothing."""
    try:
        if request.call == WRITE:
            return os.readlink(f"/proc/{request.pid}/fd/{request.arguments[0]}")
        with open(f"/proc/{request.pid}/mem", "rb", buffering=0) as memory:
            memory.seek(request.arguments[1])
            return os.fsdecode(memory.read(4096).split(b"\0")[0])
    except OSError:
        return ""


def answer_all(descriptor, directory, switch):
    request, answer = Request(), Answer()
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    while True:
        if any(events & select.POLLHUP for _, events in poll.poll()):
            return  # Nobody is left who could ask.
        ctypes.memset(ctypes.byref(request), 0, ctypes.sizeof(request))
        try:
            fcntl.ioctl(descriptor, RECEIVE, request)
        except OSError:
            continue  # It was killed meanwhile.
        is_refused = switch.exists() and pathlib.Path(file_of(request)).is_relative_to(directory)
        answer.id, answer.value = request.id, 0
        answer.error, answer.flags = (-errno.EROFS, 0) if is_refused else (0, CONTINUE)
        with contextlib.suppress(OSError):
            fcntl.ioctl(descriptor, SEND, answer)


def main(directory, switch, *command):
    here, there = socket.socketpair()
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.setsid()
        here.close()
        _, (descriptor,), _, _ = socket.recv_fds(there, 1, 1)
        answer_all(descriptor, directory, pathlib.Path(switch))
        return
    descriptor = ask_before_writes()
    socket.send_fds(here, [b"x"], [descriptor])
    # Its process has only the descriptors that it is given.
    for one in (descriptor, here.fileno(), there.fileno()):
        os.set_inheritable(one, False)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(*sys.argv[1:])
