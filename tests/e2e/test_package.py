"""The Debian package of deploy/deb: what is in it, what it depends on, and that its program works from there. tests/package installs it."""
import json
import os
import re
import subprocess
import sys

import pytest

import flights
from airways import GUESTS, flight
from host import BINARY, ROOT

LIBEXEC = "/usr/libexec/hangar"


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, text=True, **options).stdout


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """Built like that of `make deb`, but in seconds: neither stripped nor compressed."""
    environment = {**os.environ, "DEB_BUILD_OPTIONS": "nostrip noautodbgsym", "DPKG_DEB_COMPRESSOR_TYPE": "none", "SOURCE_DATE_EPOCH": "1700000000"}
    out = tmp_path_factory.mktemp("deb")
    return run(sys.executable, ROOT / "deploy/deb/build.py", out, "--bin", BINARY.parent, "--guests", GUESTS, env=environment).strip()


@pytest.fixture(scope="module")
def root(package, tmp_path_factory):
    """The package's files, in a directory of their own."""
    directory = tmp_path_factory.mktemp("root")
    run("dpkg-deb", "--extract", package, directory)
    yield directory
    # As large as the programs.
    for name in ("hangar", "hangar-compile", "hangar-guest"):
        (directory / LIBEXEC.lstrip("/") / name).unlink()


def field(package, name):
    return run("dpkg-deb", "--field", package, name).strip()


def commands():
    """The first name of each command in `hangar --help`."""
    return re.findall(r"^  ([a-z-]+)", run(BINARY, "--help").partition("Subcommands:\n")[2], re.MULTILINE)


def test_it_has_the_programs_the_unit_pages_completions_and_manifests(package, root):
    files = {f"/{path.relative_to(root)}": path for path in root.rglob("*") if not path.is_dir()}
    pages = {f"/usr/share/man/man1/{name}.1.gz" for name in ("hangar", *(f"hangar-{one}" for one in commands()))}
    manifests = {f"/usr/share/hangar/{name}" for name in ("hangar.yaml", "k0s.yaml", "outside.yaml")} | {
        f"/usr/share/hangar/crds/{path.name}" for path in (ROOT / "deploy/crds").iterdir()}
    demo = {f"/usr/share/hangar/demo/{path}" for path in (
        "show.sh", "words.sh", "rights.yaml", "machine.yaml", "modules/pipeline.wasm", "modules/ring.wasm",
        *(f"examples/pipeline/{name}.yaml" for name in ("airway", "pipeline", "failing")),
        *(f"examples/ring/{name}.yaml" for name in ("testresources", "roles", "number")),
        *(f"examples/database-provisioner/{name}.yaml" for name in ("rights", "workflow")))}

    assert set(files) == {
        "/usr/bin/hangar", *(f"{LIBEXEC}/{name}" for name in ("hangar", "hangar-compile", "hangar-guest")),
        "/lib/systemd/system/hangar.service", "/etc/hangar/hangar.yaml", *pages, *manifests, *demo,
        "/usr/share/bash-completion/completions/hangar", "/usr/share/zsh/vendor-completions/_hangar", "/usr/share/fish/vendor_completions.d/hangar.fish",
        *(f"/usr/share/doc/hangar/{name}" for name in ("changelog.gz", "copyright", "lua.go.sum", "pipeline.go.sum.gz", "ring.Cargo.lock", "quickjs.Cargo.lock", "wasmtime.Cargo.lock.gz"))}
    assert files["/lib/systemd/system/hangar.service"].read_text() == (ROOT / "deploy/edge/hangar.service").read_text()
    control = run("dpkg-deb", "--info", package, "conffiles").split()
    assert control == ["/etc/hangar/hangar.yaml"]
    assert field(package, "Version") == run(BINARY, "version").split()[-1]


def test_it_depends_on_the_packages_of_the_libraries_that_its_programs_load(package):
    depends = {one.split()[0] for one in field(package, "Depends").split(",")}
    paths = set()
    for name in ("hangar", "hangar-compile", "hangar-guest"):
        wanted = re.findall(r"NEEDED\s+(\S+)", run("objdump", "-p", BINARY.parent / name))
        loaded = dict(re.findall(r"^\s*(\S+) => (\S+) ", run("ldd", BINARY.parent / name), re.MULTILINE))
        paths |= {os.path.realpath(loaded[library]) for library in wanted if library in loaded}
    # Where /usr is merged, a package may have its file under another path. Its status is 1 when it does not know one.
    found = subprocess.run(["dpkg-query", "--search", *paths, *(path.removeprefix("/usr") for path in paths)],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    # By the package's own name, or by one that it provides for one version of its interface.
    names = {owner: {owner, *re.findall(r"[^\s,()=]+", run("dpkg-query", "--show", "--showformat=${Provides}", owner))}
             for owner in {line.split(":")[0] for line in found.splitlines()}}

    assert len(names) > 10
    assert not [owner for owner, known in names.items() if not known & depends]
    assert depends - set().union(*names.values()) == {"ca-certificates"}


def test_the_installed_program_finds_its_compiler(root, tmp_path):
    """/usr/bin has a link to it only."""
    about = json.dumps(flights.greeting("web", "default"))
    done = run(root / "usr/bin/hangar", "run-flight", flight("greeting_rust"), f"--module-cache-dir={tmp_path}", input=about)
    assert "kind: ConfigMap" in done and "text: hi" in done


def test_the_pages_and_completions_are_of_this_program(root):
    shown = run("man", "--local-file", root / "usr/share/man/man1/hangar-host.1.gz", env={**os.environ, "MANWIDTH": "200", "LC_ALL": "C.UTF-8"})
    assert "--leader-elect" in shown and "run all controllers" in shown
    completion = (root / "usr/share/bash-completion/completions/hangar").read_text()
    assert completion == run(BINARY, "completion", "bash")


def test_the_unit_is_not_enabled_before_there_is_a_kubeconfig_and_stopped_before_the_program_goes(package, tmp_path):
    run("dpkg-deb", "--control", package, tmp_path)
    scripts = {name: (tmp_path / name).read_text() for name in ("postinst", "prerm", "postrm")}

    # What is enabled stays so; deb-systemd-invoke starts nothing that is disabled.
    assert re.findall(r"deb-systemd-helper (?:--quiet )?\S+", scripts["postinst"]).count("deb-systemd-helper enable") == 1
    assert "if deb-systemd-helper --quiet was-enabled 'hangar.service'; then" in scripts["postinst"]
    assert "deb-systemd-invoke stop 'hangar.service'" in scripts["prerm"]
    assert "rm -f /etc/hangar/kubeconfig" in scripts["postrm"].partition('"$1" = purge')[2]
