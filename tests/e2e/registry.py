"""The control plane's OCI registry, with pushes as `yoke stow` and `oras push` make them, and signatures as `cosign sign` makes them."""
import base64
import gzip
import hashlib
import http.client
import json
import pathlib

from keyless import Identity
from signing import sign_bytes

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
SIMPLE_SIGNING = "application/vnd.dev.cosign.simplesigning.v1+json"
BUNDLE = "application/vnd.dev.sigstore.bundle.v0.3+json"
IN_TOTO = "application/vnd.in-toto+json"
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

    def _put_manifest(self, repository, reference, manifest, content_type=MANIFEST):
        data = json.dumps(manifest).encode()
        self._request("PUT", f"/v2/{repository}/manifests/{reference or digest_of(data)}", data, content_type)
        return {"mediaType": content_type, "digest": digest_of(data), "size": len(data)}

    def _signature(self, repository, layer, tag=None):
        return self._put_manifest(repository, tag, {
            "schemaVersion": 2, "mediaType": MANIFEST, "layers": [layer],
            "config": {"mediaType": "application/vnd.oci.image.config.v1+json", **self._push_blob(repository, b"{}")}})

    def _refer(self, repository, digest, signature, artifact_type):
        """Lists a signature where clients put referrers if the registry has no API for them, as this one."""
        self._put_manifest(repository, digest.replace(":", "-"), {
            "schemaVersion": 2, "mediaType": INDEX, "manifests": [{**signature, "artifactType": artifact_type}]}, INDEX)

    def sign(self, repository, digest, key, place="tag", of=None):
        """Signs a manifest with the private key in that file, or as a keyless.Identity. `place`: behind cosign's tag, as a referrer, or as a bundle
        (cosign 3). `of`: what the signature says instead of the digest."""
        of = of or digest

        def signed_by(data, envelope_payload=None):
            return key.sign(data, envelope_payload) if isinstance(key, Identity) else (sign_bytes(data, key), {}, {"publicKey": {"hint": ""}})

        if place == "bundle":
            statement = json.dumps({"_type": "https://in-toto.io/Statement/v1", "predicateType": "https://sigstore.dev/cosign/sign/v1", "predicate": {},
                                    "subject": [{"digest": {"sha256": of.removeprefix("sha256:")}}]}).encode()
            signed = b"DSSEv1 %d %s %d %s" % (len(IN_TOTO), IN_TOTO.encode(), len(statement), statement)
            signature, _, material = signed_by(signed, statement)
            bundle = json.dumps({"mediaType": BUNDLE, "verificationMaterial": material, "dsseEnvelope": {
                "payload": base64.b64encode(statement).decode(), "payloadType": IN_TOTO,
                "signatures": [{"sig": base64.b64encode(signature).decode()}]}}).encode()
            self._refer(repository, digest, self._signature(repository, {"mediaType": BUNDLE, **self._push_blob(repository, bundle)}), BUNDLE)
            return
        payload = json.dumps({"critical": {"identity": {"docker-reference": f"{self.address}/{repository}"}, "image": {"docker-manifest-digest": of},
                                           "type": "cosign container image signature"}, "optional": None}).encode()
        signature, annotations, _ = signed_by(payload)
        layer = {"mediaType": SIMPLE_SIGNING, **self._push_blob(repository, payload),
                 "annotations": {"dev.cosignproject.cosign/signature": base64.b64encode(signature).decode(), **annotations}}
        if place == "tag":
            self._signature(repository, layer, digest.replace(":", "-") + ".sig")
        else:
            self._refer(repository, digest, self._signature(repository, layer), "application/vnd.dev.cosign.artifact.sig.v1+json")

    def layer(self, repository, tag):
        """The one layer of an artifact, inflated."""
        manifest = json.loads(self._request("GET", f"/v2/{repository}/manifests/{tag}", accept=MANIFEST)[1])
        data = self._request("GET", f"/v2/{repository}/blobs/{manifest['layers'][0]['digest']}")[1]
        assert digest_of(data) == manifest["layers"][0]["digest"]
        return gzip.decompress(data)
