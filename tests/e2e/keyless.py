"""An instance of Sigstore for tests: it issues certificates, and logs them and signatures, so that artifacts can be signed without keys."""
import base64
import datetime
import hashlib
import json
import pathlib
import subprocess
import time

from signing import sign_bytes

SUBJECT = "https://github.com/team/web/.github/workflows/release.yml@refs/tags/v1"
ISSUER = "https://token.actions.githubusercontent.com"
ECDSA_WITH_SHA256 = "1.2.840.10045.4.3.2"


def _b64(data):
    return base64.b64encode(data).decode()


def _der(tag, *parts):
    body = b"".join(parts)
    size = len(body).to_bytes(-(-len(body).bit_length() // 8), "big")
    return bytes([tag]) + (bytes([len(body)]) if len(body) < 0x80 else bytes([0x80 + len(size)]) + size) + body


def _sequence(*parts):
    return _der(0x30, *parts)


def _oid(text):
    first, second, *rest = map(int, text.split("."))
    made = bytes([40 * first + second])
    for number in rest:
        digits = [number & 0x7F]
        while number := number >> 7:
            digits.append(number & 0x7F | 0x80)
        made += bytes(reversed(digits))
    return _der(6, made)


def _extension(oid, value, critical=False):
    return _sequence(_oid(oid), *([_der(1, b"\xff")] if critical else []), _der(4, value))


def _time(seconds):
    return _der(0x17, datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%y%m%d%H%M%SZ").encode())


def _name(text):
    return _sequence(*([_der(0x31, _sequence(_oid("2.5.4.3"), _der(0x0C, text.encode())))] if text else []))


class _Key:
    """An ECDSA key in a file."""

    def __init__(self, directory, name):
        self.file = directory / f"{name}.pem"
        subprocess.run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", self.file], check=True, capture_output=True)
        self.public = subprocess.run(["openssl", "pkey", "-in", self.file, "-pubout", "-outform", "DER"], check=True, capture_output=True).stdout
        self.id = hashlib.sha256(self.public).digest()

    def sign(self, data):
        return sign_bytes(data, self.file)


class Instance:
    """Its authority, its log of certificates and its log of signatures."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.authority, self.certificate_log, self.log = (_Key(self.directory, name) for name in ("authority", "certificate-log", "log"))
        self.number = 1
        constraints = [_extension("2.5.29.19", _sequence(_der(1, b"\xff")), True), _extension("2.5.29.15", _der(3, b"\x01\x06"), True)]
        now = int(time.time())
        self.root = self._signed(self._certificate(1, "authority", self.authority, constraints, (now - 24 * 3600, now + 24 * 3600)))

    @staticmethod
    def _certificate(number, name, key, extensions, times):
        """The part that is signed."""
        serial = _der(2, (0x10000000 + number).to_bytes(4, "big"))
        return _sequence(_der(0xA0, _der(2, b"\x02")), serial, _sequence(_oid(ECDSA_WITH_SHA256)), _name("authority"), _sequence(*map(_time, times)),
                         _name(name), key.public, _der(0xA3, _sequence(*extensions)))

    def _signed(self, part):
        return _sequence(part, _sequence(_oid(ECDSA_WITH_SHA256)), _der(3, b"\0", self.authority.sign(part)))

    def issue(self, key, subject, issuer):
        """A certificate for twenty minutes around now, which the log of certificates has seen, in DER."""
        extensions = [
            _extension("2.5.29.15", _der(3, b"\x07\x80"), True), _extension("2.5.29.37", _sequence(_oid("1.3.6.1.5.5.7.3.3"))),
            _extension("2.5.29.17", _sequence(_der(0x81 if "@" in subject and "/" not in subject else 0x86, subject.encode())), True),
            _extension("1.3.6.1.4.1.57264.1.8", _der(0x0C, issuer.encode()))]
        now = int(time.time())
        self.number += 1
        usual = (self.number, "", key)
        times = (now - 600, now + 600)
        seen = self._certificate(*usual, extensions, times)
        at = (now * 1000).to_bytes(8, "big")
        signature = self.certificate_log.sign(b"\0\0" + at + b"\0\1" + self.authority.id + len(seen).to_bytes(3, "big") + seen + b"\0\0")
        entry = b"\0" + self.certificate_log.id + at + b"\0\0" + b"\4\3" + len(signature).to_bytes(2, "big") + signature
        entries = len(entry).to_bytes(2, "big") + entry
        timestamps = _extension("1.3.6.1.4.1.11129.2.4.2", _der(4, len(entries).to_bytes(2, "big") + entries))
        return self._signed(self._certificate(*usual, [*extensions, timestamps], times))

    def trust_root(self):
        """The TrustedRoot that trusts it."""
        valid = {"start": "2020-01-01T00:00:00Z"}

        def log(key):
            return {"baseUrl": "https://log.example.com", "hashAlgorithm": "SHA2_256", "logId": {"keyId": _b64(key.id)},
                    "publicKey": {"rawBytes": _b64(key.public), "keyDetails": "PKIX_ECDSA_P256_SHA_256", "validFor": valid}}
        return {"mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1", "tlogs": [log(self.log)], "ctlogs": [log(self.certificate_log)],
                "certificateAuthorities": [{"subject": {"commonName": "authority"}, "uri": "https://authority.example.com", "validFor": valid,
                                            "certChain": {"certificates": [{"rawBytes": _b64(self.root)}]}}]}

    def entry(self, body):
        """The log's entry with its promise, as cosign's annotation and as a bundle have it."""
        payload = {"body": _b64(body), "integratedTime": int(time.time()), "logID": self.log.id.hex(), "logIndex": 7}
        promise = _b64(self.log.sign(json.dumps(payload, separators=(",", ":"), sort_keys=True).encode()))
        return ({"SignedEntryTimestamp": promise, "Payload": payload},
                {"logIndex": "7", "logId": {"keyId": _b64(self.log.id)}, "kindVersion": {"kind": json.loads(body)["kind"], "version": "0.0.1"},
                 "integratedTime": str(payload["integratedTime"]), "inclusionPromise": {"signedEntryTimestamp": promise}, "canonicalizedBody": payload["body"]})


class Identity:
    """Somebody who signs without a key of theirs: each signature has a key and a certificate of its own."""

    def __init__(self, instance, subject=SUBJECT, issuer=ISSUER):
        self.instance, self.subject, self.issuer = instance, subject, issuer

    def sign(self, data, payload=None):
        """A signature over bytes; what cosign puts beside it in annotations; what a bundle has as its verificationMaterial. `payload`: that of the
        bundle's envelope."""
        self.instance.number += 1
        key = _Key(self.instance.directory, f"signer-{self.instance.number}")
        certificate = self.instance.issue(key, self.subject, self.issuer)
        pem = f"-----BEGIN CERTIFICATE-----\n{base64.encodebytes(certificate).decode()}-----END CERTIFICATE-----\n"
        signature = key.sign(data)
        if payload is None:
            spec = {"data": {"hash": {"algorithm": "sha256", "value": hashlib.sha256(data).hexdigest()}},
                    "signature": {"content": _b64(signature), "publicKey": {"content": _b64(pem.encode())}}}
        else:
            spec = {"payloadHash": {"algorithm": "sha256", "value": hashlib.sha256(payload).hexdigest()},
                    "signatures": [{"signature": _b64(signature), "verifier": _b64(pem.encode())}]}
        body = json.dumps({"apiVersion": "0.0.1", "kind": "hashedrekord" if payload is None else "dsse", "spec": spec}).encode()
        annotated, bundled = self.instance.entry(body)
        return (signature, {"dev.sigstore.cosign/certificate": pem, "dev.sigstore.cosign/bundle": json.dumps(annotated)},
                {"certificate": {"rawBytes": _b64(certificate)}, "tlogEntries": [bundled]})
