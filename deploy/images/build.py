#!/usr/bin/env python3
"""Makes container images without a container engine, from what is on this machine and nothing else.

    build.py host OUT --bin DIR --name REFERENCE        the host: hangar, hangar-compile, hangar-guest,
                                                        hangar-node-fetch and Debian's libraries
    build.py installer OUT --bin DIR --name REFERENCE [--runtimes DIR]
                                                        the node installer: hangar-node, one static program, and
                                                        the runtimes of DIR, for this machine's architecture;
                                                        none where nodes download them
    build.py root host|installer OUT --bin DIR [...]    only the directory tree, for the Containerfiles here

OUT is an OCI image archive: `ctr images import OUT`, `podman load -i OUT`, `skopeo copy oci-archive:OUT
docker://REFERENCE` and `crane push` after `tar -x` take it. The same inputs make the same bytes.

The host's libraries are taken from the Debian packages that are installed here, which are those that it was
built with; the image says which, as distroless images do (/var/lib/dpkg/status.d), so that scanners know, and
has their copyright files.
"""
import argparse
import gzip
import hashlib
import io
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile

USER = 65532
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


# The trees ---------------------------------------------------------------------------------------


def install(source, root, path, mode=0o644):
    target = root / path.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(os.path.realpath(source), target)
    target.chmod(mode)


def write(root, path, text):
    target = root / path.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)


def libraries(program):
    """The files that the dynamic linker maps for a program, by the paths at which it looks for them."""
    found = set()
    for line in run("ldd", program).splitlines():
        words = line.split()
        if "not" in words:
            sys.exit(f"error: {program} needs {words[0]}, which is not installed")
        paths = [word for word in words if word.startswith("/")]
        if paths:
            found.add(paths[0])
    return found


def packages_of(paths):
    """The Debian packages of the files. Where /usr is merged, a package may have its file under another path."""
    names = {path: {path, os.path.realpath(path), os.path.realpath(path).removeprefix("/usr")} for path in paths}
    # Its status is 1 when it does not know some of the paths.
    answers = subprocess.run(["dpkg-query", "--search", *sorted(set().union(*names.values()))],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    owners = {known: owner.split(", ")[0] for owner, known in (line.rsplit(": ", 1) for line in answers.splitlines())}
    for path, known in names.items():
        if not known & owners.keys():
            sys.exit(f"error: {path} is of no Debian package: which licence it has cannot be told")
    return {owners[next(iter(sorted(known & owners.keys())))] for known in names.values()}


def host_tree(root, arguments):
    programs = [arguments.bin / name for name in ("hangar", "hangar-compile", "hangar-guest", "hangar-node-fetch")]
    needed = set()
    for program in programs:
        install(program, root, f"/usr/bin/{program.name}", 0o755)
        needed |= libraries(program)
    # The host under the name of yoke's controller, and its commands under those of yoke's programs.
    for name in ("atc", "yoke", "yokecd"):
        (root / "usr/bin" / name).symlink_to("hangar")
    for path in sorted(needed):
        install(path, root, path, 0o755)
    for package in sorted(packages_of(needed) | {"ca-certificates"}):
        name = package.split(":")[0]
        write(root, f"/var/lib/dpkg/status.d/{name}", run("dpkg-query", "--status", package))
        install(f"/usr/share/doc/{name}/copyright", root, f"/usr/share/doc/{name}/copyright")
    install(CERTIFICATES, root, CERTIFICATES)
    install("/etc/os-release", root, "/etc/os-release")
    write(root, "/etc/passwd", f"root:x:0:0:root:/root:/sbin/nologin\nhangar:x:{USER}:{USER}:hangar:/var/cache/hangar:/sbin/nologin\n")
    write(root, "/etc/group", f"root:x:0:\nhangar:x:{USER}:\n")
    write(root, "/etc/nsswitch.conf", "hosts: files dns\n")
    (root / "tmp").mkdir(mode=0o1777)
    (root / "tmp").chmod(0o1777)
    (root / "var/cache/hangar").mkdir(parents=True)
    return {"User": f"{USER}:{USER}", "WorkingDir": "/", "Entrypoint": ["/usr/bin/hangar"], "Cmd": ["host"],
            "Env": ["PATH=/usr/bin", "HOME=/var/cache/hangar", f"SSL_CERT_FILE={CERTIFICATES}"],
            "ExposedPorts": {"8080/tcp": {}}}


def installer_tree(root, arguments):
    program = arguments.bin / "hangar-node"
    if "statically linked" not in run("file", "--dereference", program) and "static-pie" not in run("file", "--dereference", program):
        sys.exit(f"error: {program} is not static")
    install(program, root, "/bin/hangar-node", 0o755)
    sums = []
    for source in sorted(arguments.runtimes.iterdir()) if arguments.runtimes else []:
        install(source, root, f"/runtimes/{source.name}", 0o755)
        sums.append(f"{hashlib.sha256(source.read_bytes()).hexdigest()}  {source.name}\n")
    if sums:
        write(root, "/runtimes/SHA256SUMS", "".join(sums))
    # Root, because it changes the node. The Job sets NODE_ROOT, the path where the node's root is mounted.
    return {"User": "0:0", "WorkingDir": "/", "Entrypoint": ["/bin/hangar-node"],
            "Cmd": ["install", "--runtimes-dir", "/runtimes"], "Env": ["PATH=/bin"]}


TREES = {"host": host_tree, "installer": installer_tree}


# The image ---------------------------------------------------------------------------------------


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def layer_of(root):
    """The tree as a tar: sorted, owned by root, of 1970."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(root.rglob("*")):
            entry = tar.gettarinfo(path, str(path.relative_to(root)))
            entry.uid = entry.gid = USER if entry.name == "var/cache/hangar" else 0
            entry.uname = entry.gname = ""
            entry.mtime = 0
            if entry.isdir() and entry.name != "tmp":
                entry.mode = 0o755
            with open(path, "rb") if entry.isreg() else io.BytesIO() as content:
                tar.addfile(entry, content)
    return packed.getvalue()


def archive(root, config, name, out):
    layer = layer_of(root)
    packed = gzip.compress(layer, compresslevel=6, mtime=0)
    image = json.dumps({
        "architecture": ARCHITECTURES[platform.machine()], "os": "linux", "config": config,
        "rootfs": {"type": "layers", "diff_ids": [digest(layer)]},
        "history": [{"created": "1970-01-01T00:00:00Z", "created_by": "deploy/images/build.py"}]}).encode()
    manifest = json.dumps({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest(image), "size": len(image)},
        "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": digest(packed), "size": len(packed)}],
    }).encode()
    tag = name.rpartition(":")[2] if ":" in name.rpartition("/")[2] else "latest"
    index = json.dumps({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [{"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": digest(manifest), "size": len(manifest),
                       "annotations": {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": tag}}]}).encode()
    files = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}', "index.json": index}
    files |= {f"blobs/sha256/{digest(blob)[7:]}": blob for blob in (image, manifest, packed)}
    with tarfile.open(out, "w", format=tarfile.PAX_FORMAT) as tar:
        for path, content in sorted(files.items()):
            entry = tarfile.TarInfo(path)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return digest(manifest)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="+", metavar="host|installer|root host|root installer")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="where the built programs are")
    parser.add_argument("--name", help="the image's reference, such as registry.example.com/hangar:1.0")
    parser.add_argument("--runtimes", type=pathlib.Path, help="directory of shims and OCI runtimes: containerd-shim-NAME-v1, crun-NAME")
    arguments = parser.parse_args()

    *mode, tree = arguments.what
    if mode not in ([], ["root"]) or tree not in TREES:
        parser.error("say host, installer, root host or root installer")
    if arguments.runtimes and not any(arguments.runtimes.iterdir()):
        parser.error(f"{arguments.runtimes} is empty: without --runtimes nodes have to download them")
    if mode:
        arguments.out.mkdir(parents=True)
        TREES[tree](arguments.out, arguments)
        return
    if not arguments.name:
        parser.error("--name is needed")
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        config = TREES[tree](root, arguments)
        print(f"{arguments.name}@{archive(root, config, arguments.name, arguments.out)}")


if __name__ == "__main__":
    main()
