"""Processes as the kernel shows them."""
import os
import pathlib


def children(parent):
    """Live processes that are children of `parent`."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            state, of = pathlib.Path("/proc", name, "stat").read_text().rsplit(") ", 1)[1].split()[:2]
        except (OSError, IndexError):
            continue
        if int(of) == parent and state != "Z":
            found.append(int(name))
    return found
