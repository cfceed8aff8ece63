#!/usr/bin/env python3
"""Makes the Debian package of the built programs, with debhelper.

    build.py OUT --bin DIR --guests DIR   OUT: a directory, which gets hangar_VERSION_ARCHITECTURE.deb; the path is
                                          printed. The guests are those of `hangar demo`.

This script lays out what is in the package, debian/ says how it becomes one. The libraries that it depends on are those
that the programs were linked with, in the versions of this machine's Debian (dpkg-shlibdeps). hangar-node and
hangar-node-fetch are not in it: they run in containers of Jobs, whose images deploy/images builds. DEB_BUILD_OPTIONS
is passed on. The same inputs and SOURCE_DATE_EPOCH (default: the time of the last commit) make the same bytes.
"""
import argparse
import email.utils
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# hangar finds the other two beside itself. Only hangar is in a directory of commands, as a link.
PROGRAMS = ("hangar", "hangar-compile", "hangar-guest")
LIBEXEC = "usr/libexec/hangar"
# Where each shell looks for what packages bring.
COMPLETIONS = {"bash": "usr/share/bash-completion/completions/hangar", "zsh": "usr/share/zsh/vendor-completions/_hangar",
               "fish": "usr/share/fish/vendor_completions.d/hangar.fish"}


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def install(source, target, mode=0o644):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(mode)


def root_tree(root, binaries, guests):
    """The files of the package, but for what debhelper installs itself."""
    for name in PROGRAMS:
        install(binaries / name, root / LIBEXEC / name, 0o755)
    for shell, path in COMPLETIONS.items():
        (root / path).parent.mkdir(parents=True)
        (root / path).write_text(run(binaries / "hangar", "completion", shell))
    # What dpkg asks about before an upgrade changes it.
    install(ROOT / "deploy/edge/host.yaml", root / "etc/hangar/hangar.yaml")
    for name in ("hangar.yaml", "k0s.yaml", "outside.yaml"):
        install(ROOT / "deploy/edge" / name, root / "usr/share/hangar" / name)
    run(ROOT / "deploy/demo/install.sh", root / "usr/share/hangar", "--bin", binaries, "--guests", guests)
    for library in ("wasmtime", "quickjs"):
        install(ROOT / "third_party" / library / "Cargo.lock", root / f"usr/share/doc/hangar/{library}.Cargo.lock")
    install(ROOT / "third_party/lua/go.sum", root / "usr/share/doc/hangar/lua.go.sum")
    install(ROOT / "examples/go.sum", root / "usr/share/doc/hangar/pipeline.go.sum")
    install(ROOT / "examples/ring/Cargo.lock", root / "usr/share/doc/hangar/ring.Cargo.lock")


def changelog(version, epoch):
    """CHANGELOG.md is for people; dpkg takes the version and the date from here."""
    maintainer = next(line for line in (HERE / "debian/control").read_text().splitlines() if line.startswith("Maintainer: "))
    when = email.utils.formatdate(int(epoch), usegmt=False)
    return f"hangar ({version}) bookworm; urgency=medium\n\n  * See CHANGELOG.md of the sources.\n\n -- {maintainer.removeprefix('Maintainer: ')}  {when}\n"


def build(out, binaries, guests):
    version = run(binaries / "hangar", "version").split()[-1]
    epoch = os.environ.get("SOURCE_DATE_EPOCH") or run("git", "-C", ROOT, "log", "-1", "--format=%ct").strip()
    # No package of debugging symbols, unless the caller says something else.
    environment = {"DEB_BUILD_OPTIONS": "noautodbgsym", **os.environ, "SOURCE_DATE_EPOCH": epoch}
    with tempfile.TemporaryDirectory() as directory:
        # The results are put beside it.
        source = pathlib.Path(directory) / "hangar"
        shutil.copytree(HERE / "debian", source / "debian")
        (source / "debian/changelog").write_text(changelog(version, epoch))
        install(ROOT / "deploy/edge/hangar.service", source / "debian/hangar.service")
        root_tree(source / "root", binaries, guests)
        run(sys.executable, ROOT / "tools/man_pages.py", binaries / "hangar", source / "man", env=environment)
        try:
            run("dpkg-buildpackage", "--build=binary", "--no-sign", "--no-check-builddeps", cwd=source, stderr=subprocess.STDOUT, env=environment)
        except subprocess.CalledProcessError as error:
            sys.exit(f"{error.stdout}error: dpkg-buildpackage: exit status {error.returncode}")
        (package,) = source.parent.glob("hangar_*.deb")
        out.mkdir(parents=True, exist_ok=True)
        return shutil.copy(package, out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="where the built programs are")
    parser.add_argument("--guests", type=pathlib.Path, required=True, help="where pipeline.wasm and ring.wasm are")
    arguments = parser.parse_args()
    print(build(arguments.out, arguments.bin, arguments.guests))


if __name__ == "__main__":
    main()
