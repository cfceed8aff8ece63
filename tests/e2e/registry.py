"""The control plane's OCI registry, with pushes as `yoke stow` and `oras push` make them."""
import base64
import gzip
import hashlib
import http.client
import json
import pathlib

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
YOKE_CONFIG = "application/vnd.yoke.config.v1+json"
YOKE_LAYER = "application/vnd.yoke.wasm.gzip"


def digest_of(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


class Registry:
    """Plain HTTP with basic authentication."""

    def __init__(self, cluster):
        self.address = cluster.env["HANGAR_CP_REGISTRY"]
        self.user = cluster.env["HANGAR_CP_REGISTRY_USER"]
        self.password = pathlib.Path(cluster.env["HANGAR_CP_REGISTRY_PASSWORD_FILE"]).read_text().strip()

    def docker_config(self, directory, password):
        """The path of a docker config.json with that password for the registry, or without any (None)."""
        login = base64.b64encode(f"{self.user}:{password}".encode()).decode()
        path = directory / "docker-config.json"
        path.write_text(json.dumps({"auths": {self.address: {"auth": login}} if password else {}}))
        return str(path)

    def url(self, repository, reference):
        """The module URL for a tag, or for a manifest's digest."""
        return f"oci://{self.address}/{repository}{'@' if reference.startswith('sha256:') else ':'}{reference}"

    def _request(self, method, path, body=None, content_type=None, accept="*/*"):
        """The answer's headers and its body."""
        login = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        headers = {"Authorization": f"Basic {login}", "Accept": accept, **({"Content-Type": content_type} if content_type else {})}
        connection = http.client.HTTPConnection(self.address, timeout=30)
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        assert answer.status < 300, f"{method} {path}: {answer.status} {data[:200]!r}"
        return answer.headers, data

    def _push_blob(self, repository, data):
        where = self._request("POST", f"/v2/{repository}/blobs/uploads/")[0]["Location"]
        where = where.removeprefix(f"http://{self.address}")
        self._request("PUT", f"{where}{'&' if '?' in where else '?'}digest={digest_of(data)}", data, "application/octet-stream")
        return {"digest": digest_of(data), "size": len(data)}

    def push(self, repository, tag, module, config_type=YOKE_CONFIG, layer_type=YOKE_LAYER):
        """Pushes a module file as an artifact; gzip if the layer's type says so. Returns the manifest's digest."""
        data = pathlib.Path(module).read_bytes()
        if layer_type.endswith("gzip"):
            data = gzip.compress(data, compresslevel=1)
        manifest = json.dumps({
            "schemaVersion": 2, "mediaType": MANIFEST,
            "config": {"mediaType": config_type, **self._push_blob(repository, b"{}")},
            "layers": [{"mediaType": layer_type, **self._push_blob(repository, data)}]}).encode()
        self._request("PUT", f"/v2/{repository}/manifests/{tag}", manifest, MANIFEST)
        return digest_of(manifest)

    def layer(self, repository, tag):
        """The one layer of an artifact, inflated."""
        manifest = json.loads(self._request("GET", f"/v2/{repository}/manifests/{tag}", accept=MANIFEST)[1])
        data = self._request("GET", f"/v2/{repository}/blobs/{manifest['layers'][0]['digest']}")[1]
        assert digest_of(data) == manifest["layers"][0]["digest"]
        return gzip.decompress(data)
