#!/usr/bin/env python3
"""Runs commands with less than this process has: other mounts (mounting()), or the system calls that a systemd unit
allows, in its own process and without systemd:

    confined.py UNIT COMMAND...

The latter follows SystemCallFilter=, SystemCallErrorNumber=EPERM, RestrictAddressFamilies= and NoNewPrivileges= of the unit.
systemd-analyze says what is in systemd's sets of calls; libseccomp, which hangar depends on, makes the filter.
"""
import ctypes
import errno
import functools
import os
import pathlib
import shlex
import socket
import subprocess
import sys

ALLOW = 0x7FFF0000
ERRNO = 0x00050000
EQUAL = 4
PR_SET_NO_NEW_PRIVS = 38


# How a process gets mounts of its own, in the order in which they are tried. Behind sudo, which gives commands another
# PATH, the command is this user's again.
WAYS = {
    "root": ("unshare", "--mount"),
    "user namespace": ("unshare", "--map-root-user", "--mount"),
    "sudo": ("sudo", "-n", "-E", "unshare", "--mount"),
}


def is_open(way):
    """Whether this user may mount something that way, where nobody else sees it."""
    try:
        tried = subprocess.run([*WAYS[way], "mount", "-t", "tmpfs", "tried", "/mnt"], capture_output=True, check=False, stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        return False
    return tried.returncode == 0


@functools.cache
def way_to_mount():
    found = next(filter(is_open, WAYS), None)
    assert found, "no process can have mounts of its own here: that needs root, user namespaces, or sudo without a password"
    return found


def mounting(script):
    """A prefix of a command, which runs with mounts of its own, after the shell's `script` has made them. There $owner is the
    option of a tmpfs that belongs to the user of the command. In any way but sudo's the command has the process of the prefix."""
    way = way_to_mount()
    of_sudo = way == "sudo"
    user, group = (os.getuid(), os.getgid()) if of_sudo else (0, 0)
    again = f"setpriv --reuid={user} --regid={group} --init-groups env PATH={shlex.quote(os.environ['PATH'])} " if of_sudo else ""
    # One command, so that the first one to fail ends it; the exec is what `script` ends with.
    return (*WAYS[way], "sh", "-c", f'owner=uid={user},gid={group}; {script} && exec {again}"$@"', "sh")


class Comparison(ctypes.Structure):
    _fields_ = [("argument", ctypes.c_uint), ("operator", ctypes.c_int), ("value", ctypes.c_uint64), ("other", ctypes.c_uint64)]


def values_of(unit, key):
    """The values of a key of a unit, in their order."""
    return [line.split("=", 1)[1].strip() for line in pathlib.Path(unit).read_text().splitlines() if line.startswith(f"{key}=")]


def calls_of(name):
    """The system calls of one of systemd's sets, or the call itself."""
    if not name.startswith("@"):
        return {name}
    listed = subprocess.run(["systemd-analyze", "syscall-filter", "--no-pager", name], stdout=subprocess.PIPE, text=True, check=True).stdout
    words = [line.strip() for line in listed.splitlines()[1:] if line.strip() and not line.strip().startswith("#")]
    return set().union(*(calls_of(word) for word in words))


def allowed_calls(unit):
    """The names of the system calls that the unit allows."""
    allowed = set()
    for value in values_of(unit, "SystemCallFilter"):
        named = set().union(*(calls_of(word) for word in value.lstrip("~").split()))
        allowed = allowed - named if value.startswith("~") else allowed | named
    return allowed | calls_of("@default")


def confine(unit):
    """Restricts this process and those that it becomes."""
    library = ctypes.CDLL("libseccomp.so.2", use_errno=True)
    library.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.seccomp_init(ERRNO | errno.EPERM))

    def allow(name, *comparisons):
        number = library.seccomp_syscall_resolve_name(name.encode())
        array = (Comparison * len(comparisons))(*comparisons)
        # Of this library's architecture only: systemd's sets have the calls of all. Negative: not of this one.
        if number >= 0 and library.seccomp_rule_add_array(context, ALLOW, number, len(comparisons), array) != 0:
            sys.exit(f"error: {name} cannot be allowed")
    (families,) = values_of(unit, "RestrictAddressFamilies")
    for family in families.split():
        allow("socket", Comparison(0, EQUAL, getattr(socket, family), 0))
    for name in sorted(allowed_calls(unit) - {"socket"}):
        allow(name)
    assert values_of(unit, "NoNewPrivileges") == ["yes"] and values_of(unit, "SystemCallErrorNumber") == ["EPERM"]
    ctypes.CDLL(None).prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if library.seccomp_load(context) != 0:
        sys.exit("error: the filter cannot be loaded")


if __name__ == "__main__":
    confine(sys.argv[1])
    os.execvp(sys.argv[2], sys.argv[2:])
