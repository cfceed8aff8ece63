"""Modules with custom sections, and keys to sign them."""
import pathlib
import subprocess
import tempfile

from host import BINARY

EMPTY = b"\0asm\1\0\0\0"


def _leb(number):
    made = b""
    while number > 0x7F:
        made += bytes([number & 0x7F | 0x80])
        number >>= 7
    return made + bytes([number])


def section(name, contents):
    body = _leb(len(name)) + name.encode() + contents
    return b"\0" + _leb(len(body)) + body


def hangar(*arguments, stdin=b"", cwd=None):
    """The command may compile modules, also while others have the processors."""
    return subprocess.run([str(BINARY), *map(str, arguments)], input=stdin, capture_output=True, timeout=600, cwd=cwd)


def keys(directory, kind):
    """Creates a key pair. Returns the files of the private and the public key."""
    how = {"rsa": ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"], "ec": ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
           "ed25519": ["-algorithm", "ed25519"]}[kind]
    private, public = directory / f"{kind}.pem", directory / f"{kind}.pub.pem"
    subprocess.run(["openssl", "genpkey", *how, "-out", private], check=True, capture_output=True)
    subprocess.run(["openssl", "pkey", "-in", private, "-pubout", "-out", public], check=True, capture_output=True)
    return private, public


def sign_bytes(data, key):
    """A signature over bytes as cosign makes it: SHA-256 with RSA (PKCS #1 v1.5) or ECDSA; Ed25519 as it is."""
    with tempfile.TemporaryDirectory() as directory:
        file, made = pathlib.Path(directory) / "data", pathlib.Path(directory) / "signature"
        file.write_bytes(data)
        is_ed25519 = b"ED25519" in subprocess.run(["openssl", "pkey", "-in", key, "-noout", "-text"], check=True, capture_output=True).stdout
        how = ["pkeyutl", "-sign", "-rawin", "-inkey", key, "-in", file] if is_ed25519 else ["dgst", "-sha256", "-sign", key, file]
        subprocess.run(["openssl", *how, "-out", made] if is_ed25519 else ["openssl", *how[:-1], "-out", made, how[-1]], check=True, capture_output=True)
        return made.read_bytes()


def sign(module, key, directory):
    """Signs the bytes of a module by `hangar sign`, and returns the signed bytes."""
    file = pathlib.Path(directory) / "to-sign.wasm"
    file.write_bytes(module)
    done = hangar("sign", "-f", "-key", key, file)
    assert done.returncode == 0, done.stderr
    return file.read_bytes()
