"""The promises of the files of figures to their readers."""
import json
import os
import signal
import subprocess
import sys

import hangar_run
import harness
from harness import MIB, Report, SmallMachine, at_least, at_most, at_most_of_peer, percentile
from processes import children


def only_figure(**arguments):
    report = Report("test")
    report.add("figure", "ms", **arguments)
    return report.figures[0]


def test_a_figure_has_all_keys_whatever_was_measured():
    assert set(only_figure(hangar=None)) == {"figure", "unit", "hangar", "peer", "peer_name", "ratio", "target", "met"}


def test_rounds_count_by_their_median():
    figure = only_figure(hangar=[1, 100, 2], peer=[4], peer_name="it")
    assert (figure["hangar"], figure["peer"], figure["ratio"]) == (2, 4, 0.5)


def test_a_target_on_the_figure_does_not_look_at_the_peer():
    assert only_figure(hangar=64, peer=1, peer_name="it", target=at_most(64))["met"] is True
    assert only_figure(hangar=65, target=at_most(64))["met"] is False
    assert only_figure(hangar=149, target=at_least(150))["met"] is False


def test_a_target_on_the_ratio_needs_a_peer():
    assert only_figure(hangar=1, peer=5, peer_name="it", target=at_most_of_peer(0.2))["met"] is True
    assert only_figure(hangar=1, target=at_most_of_peer(0.2))["met"] is None


def test_a_peer_that_was_not_measured_has_no_name():
    assert only_figure(hangar=1, peer=None, peer_name="it")["peer_name"] is None


def test_nothing_measured_is_no_success():
    assert only_figure(hangar=[], target=at_most(1))["met"] is None


def test_the_file_is_a_list_of_the_figures(tmp_path):
    report = Report("test")
    report.add("one", "s", 1.0)
    assert json.loads(report.write(tmp_path / "test.json").read_text()) == report.figures


def test_the_table_ends_with_the_machine():
    report = Report("test")
    report.note("a note")
    assert report.table().splitlines()[-1].strip().startswith(f"the machine: {os.cpu_count()} cores")


def test_a_percentile_is_a_value_that_was_measured():
    assert percentile([3, 1, 2], 50) == 2
    assert percentile(range(1, 101), 99) == 99
    assert percentile([7], 99) == 7


SMAPS = """\
7f0000000000-7f0000200000 r-xp 00000000 fe:00 11 /srv/cache/code/a b.cwasm
Size:               2048 kB
Rss:                1024 kB
Pss:                 512 kB
VmFlags: rd ex mr mw me
7f0000200000-7f0000300000 rw-p 00000000 00:00 0
Size:               1024 kB
Rss:                1024 kB
7f0000300000-7f0000400000 r--p 00000000 fe:00 12 /srv/cache/code.old/c.cwasm
Size:               1024 kB
Rss:                1024 kB
7f0000400000-7f0000500000 r--p 00000000 fe:00 13 /srv/cache/code/d.cwasm (deleted)
Size:               1024 kB
Rss:                   0 kB
"""


def test_pages_of_files_are_those_of_one_directory():
    assert harness.file_pages(SMAPS, "/srv/cache/code") == {"mapped": 3, "resident": 1}
    assert harness.file_pages(SMAPS, "/srv/cache") == {"mapped": 4, "resident": 2}
    assert harness.file_pages("", "/srv/cache") == {"mapped": 0, "resident": 0}


def test_watches_are_counted_by_resource():
    metrics = """\
# TYPE apiserver_longrunning_requests gauge
apiserver_longrunning_requests{group="",resource="pods",scope="cluster",verb="WATCH",version="v1"} 2
apiserver_longrunning_requests{group="",resource="pods",scope="namespace",verb="WATCH",version="v1"} 1
apiserver_longrunning_requests{group="",resource="pods",scope="namespace",verb="CONNECT",version="v1"} 8
apiserver_longrunning_requests{group="apps",resource="deployments",scope="cluster",verb="WATCH",version="v1"} 0
"""
    assert hangar_run.apiserver_watches(metrics) == {"pods": 3, "deployments": 0}


def test_a_metric_is_summed_over_its_labels_and_not_over_others():
    assert hangar_run.total({"a": 1, 'a{b="c"}': 2, 'a{b="d"}': 3, "ab": 4, 'ab{b="c"}': 5}, "a") == 6
    assert hangar_run.total({}, "a") == 0


# Cgroups, as files. Version 2 is tested by these only where the machine's memory controller is one of version 1.


def test_a_small_machine_of_version_1_is_two_groups(tmp_path):
    for hierarchy in ("memory", "cpu"):
        (tmp_path / hierarchy).mkdir()

    machine = SmallMachine("edge", 128 * MIB, cores=0.5, root=tmp_path)

    (memory,) = (tmp_path / "memory").iterdir()
    (cpu,) = (tmp_path / "cpu").iterdir()
    assert (memory / "memory.limit_in_bytes").read_text() == "134217728"
    assert ((cpu / "cpu.cfs_period_us").read_text(), (cpu / "cpu.cfs_quota_us").read_text()) == ("100000", "50000")
    assert all(f"{directory}/cgroup.procs" in machine.inside()[2] for directory in (memory, cpu))
    (memory / "memory.usage_in_bytes").write_text("41943040\n")
    (memory / "memory.max_usage_in_bytes").write_text("83886080\n")
    (memory / "memory.stat").write_text("cache 20971520\ninactive_file 1\ntotal_inactive_file 10485760\n")
    (memory / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
    assert machine.memory() == {"all": 40, "kept": 30}
    assert (machine.peak_memory(), machine.kills()) == (80, 3)
    assert machine.kernel_memory() is None
    (memory / "memory.kmem.usage_in_bytes").write_text("5242880\n")
    assert machine.kernel_memory() == 5


def test_a_small_machine_of_version_2_is_one_group(tmp_path):
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids\n")

    machine = SmallMachine("edge", 128 * MIB, cores=0.5, root=tmp_path)

    group = machine.memory_directory
    assert group.parent == tmp_path
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+memory +cpu"
    assert (group / "memory.max").read_text() == "134217728"
    assert (group / "cpu.max").read_text() == "50000 100000"
    (group / "memory.current").write_text("41943040\n")
    (group / "memory.stat").write_text("anon 1\nfile 20971520\nkernel 5242880\ninactive_file 10485760\n")
    (group / "memory.events").write_text("low 0\nhigh 0\nmax 7\noom 3\noom_kill 2\noom_group_kill 0\n")
    assert machine.memory() == {"all": 40, "kept": 30}
    assert (machine.peak_memory(), machine.kills(), machine.kernel_memory()) == (None, 2, 5)
    machine.limit_memory(64 * MIB)
    assert (group / "memory.max").read_text() == "67108864"


def test_where_no_group_can_be_made_nothing_is_left(tmp_path):
    (tmp_path / "memory").mkdir()

    try:
        SmallMachine("edge", 128 * MIB, cores=0.5, root=tmp_path)
        raise AssertionError("there is no hierarchy for processor time")
    except FileNotFoundError:
        pass


def test_processes_are_counted_with_their_descendants_and_those_that_ended():
    script = "import subprocess, sys; subprocess.run(['sh', '-c', 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done']); " \
             "subprocess.Popen(['sleep', '60']); print('ready', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        parent.stdout.readline()
        [child] = children(parent.pid)
        assert harness.process_tree(parent.pid) == [parent.pid, child]
        assert harness.cpu_seconds_with_ended(parent.pid) > harness.cpu_seconds(parent.pid)
        assert harness.cpu_seconds_of_tree(parent.pid) >= harness.cpu_seconds_with_ended(parent.pid)
        assert 0 < harness.private_dirty(child) < harness.private_dirty(parent.pid)
        os.kill(child, signal.SIGKILL)
