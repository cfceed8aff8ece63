"""`hangar stow`: a module in a registry, as yoke's command pushes it."""
import gzip
import hashlib
import json
import pathlib
import re
import subprocess

import pytest

import terminals
from airways import flight
from host import BINARY
from registry import MANIFEST, YOKE_CONFIG, YOKE_LAYER, Registry
from yoke_releases import hangar, history


@pytest.fixture
def registry(cluster, tmp_path, monkeypatch):
    made = Registry(cluster)
    made.docker_config(tmp_path, made.password)
    (tmp_path / "docker-config.json").rename(tmp_path / "config.json")
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    return made


def stow(*arguments):
    return subprocess.run([str(BINARY), "stow", *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("packed", [False, True])
def test_a_module_is_pushed_under_its_tags_and_taken_off_with(cluster, namespace, registry, unique, tmp_path, packed):
    data = pathlib.Path(flight("behave")).read_bytes()
    file = tmp_path / ("main.wasm.gz" if packed else "main.wasm")
    file.write_bytes(gzip.compress(data, compresslevel=1) if packed else data)
    digest = hashlib.sha256(data).hexdigest()

    done = stow("-insecure", "-tag", "a,b", file, registry.url(f"stow/{unique}", "v1"))

    manifests = {tag: registry._request("GET", f"/v2/stow/{unique}/manifests/{tag}", accept=MANIFEST)[1] for tag in ("v1", "a", "b", "latest", f"sha256_{digest}")}
    assert done.returncode == 0 and done.stdout == "", done.stderr
    [manifest] = set(manifests.values())
    assert done.stderr == (f"digestUrl: oci://{registry.address}/stow/{unique}@sha256:{hashlib.sha256(manifest).hexdigest()}\nmoduleSHA: {digest}\ntags:\n"
                           f"    - a\n    - b\n    - latest\n    - sha256_{digest}\n    - v1\n")
    [layer] = json.loads(manifest)["layers"]
    assert json.loads(manifest)["config"]["mediaType"] == YOKE_CONFIG and layer["mediaType"] == YOKE_LAYER
    assert gzip.decompress(registry._request("GET", f"/v2/stow/{unique}/blobs/{layer['digest']}")[1]) == data

    up = hangar(cluster, "takeoff", "-insecure", "-namespace", namespace, "web", registry.url(f"stow/{unique}", "a"),
                stdin=json.dumps({"metadata": {"name": "it"}, "spec": {"behaviour": "basic"}}))
    assert up.returncode == 0 and len(history(cluster, namespace, "web")) == 1, up.stderr


def test_a_terminal_shows_how_much_is_pushed(registry, unique, tmp_path):
    module = tmp_path / "main.wasm"
    module.write_bytes(pathlib.Path(flight("behave")).read_bytes())
    code, _, text = terminals.run([BINARY, "stow", "-insecure", module, registry.url(f"stow/{unique}", "v1")])

    assert code == 0, text
    size = re.findall(r"\r\x1b\[Kpushing ([0-9.]+) of ([0-9.]+) MB", text)
    assert size and size[-1][0] == size[-1][1], text
    # The line is free again for the result.
    assert re.search(r"MB\r\x1b\[KdigestUrl: oci://", text), text


@pytest.mark.parametrize("arguments, says", [
    ([], "wasm file must be specified as first argument"), (["main.wasm"], "OCI url must be specified as second argument"),
    (["/no/such.wasm", "oci://127.0.0.1:1/a:v1"], "failed to load wasm file: "), (["https://127.0.0.1:1/main.wasm", "oci://127.0.0.1:1/a:v1"], "is not a file"),
    ([__file__, "oci://127.0.0.1:1/a:v1"], "is not a WebAssembly module"), (["{flight}", "https://127.0.0.1:1/a"], "write oci://registry/repository:tag"),
    (["-tag", "../../other", "{flight}", "oci://127.0.0.1:1/a:v1"], '--tag: "../../other" is not a tag'), (["{broken}", "oci://127.0.0.1:1/a:v1"], "invalid wasm module: "),
    (["{flight}", "oci://127.0.0.1:1/a:v1"], "failed to stow wasm artifact: ")])
def test_what_cannot_be_pushed_is_told(tmp_path, arguments, says):
    broken = tmp_path / "broken.wasm"
    broken.write_bytes(pathlib.Path(flight("behave")).read_bytes()[:100_000])

    done = stow(*(one.format(flight=flight("behave"), broken=broken) for one in arguments))

    assert done.returncode == 1 and done.stdout == "" and says in done.stderr
