"""`hangar schematics`, `sign` and `verify`: sections of a module, as yoke's commands write and read them."""
import os
import pathlib

import pytest

from airways import flight
from module_server import Modules
from signing import EMPTY, hangar, keys, section

KINDS = ["rsa", "ec", "ed25519"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_module_that_is_signed_verifies_until_anything_changes(tmp_path, kind):
    private, public = keys(tmp_path, kind)
    module = tmp_path / "main.wasm"
    module.write_bytes(pathlib.Path(flight("behave")).read_bytes())

    unsigned = hangar("verify", "-key", public, module)
    done = hangar("sign", "--key", private, module)
    verified = [hangar("verify", "-key", key, module) for key in (public, private, tmp_path)]

    assert (unsigned.returncode, unsigned.stdout, unsigned.stderr) == (1, b"", b"failed to verify module: module is unsigned\n")
    assert [(one.returncode, one.stdout, one.stderr) for one in (done, *verified)] == 4 * [(0, b"", b"")]
    data = module.read_bytes()
    for changed in (data[:100] + bytes([data[100] ^ 1]) + data[101:], data + section("hangar:plugin", b"late")):
        module.write_bytes(changed)
        assert hangar("verify", "-key", public, module).stderr == b"failed to verify module: invalid signature\n"


def test_a_signed_module_is_written_where_it_is_wanted_and_signed_again_only_with_force(tmp_path):
    private, public = keys(tmp_path, "ec")
    other, other_public = keys(tmp_path, "ed25519")
    module, out, link = (tmp_path / name for name in ("main.wasm", "signed.wasm", "link.wasm"))
    module.write_bytes(EMPTY)
    os.chmod(module, 0o640)
    link.symlink_to(module)

    assert hangar("sign", "-key", private, "-o", out, module).returncode == 0
    assert module.read_bytes() == EMPTY and hangar("verify", "-key", public, out).returncode == 0
    refused = hangar("sign", "-key", other, out)
    assert (refused.returncode, refused.stderr) == (1, b"failed to sign module: module is already signed\n")
    assert hangar("sign", "-f", "-key", other, out).returncode == 0
    assert hangar("verify", "-key", other_public, out).returncode == 0
    stale = hangar("verify", "-key", public, out)
    assert (stale.returncode, stale.stderr) == (1, b"failed to verify module: module's key fingerprint does not match provided key(s)\n")
    assert hangar("sign", "-key", private, link).returncode == 0
    assert link.is_symlink() and hangar("verify", "-key", public, module).returncode == 0
    assert module.stat().st_mode & 0o777 == 0o640


def test_metadata_is_listed_read_and_set(tmp_path):
    module = tmp_path / "main.wasm"
    module.write_bytes(EMPTY)
    meta = lambda *arguments, **options: hangar("meta", "-wasm", module, *arguments, **options)

    assert meta("ls").stdout == b""
    assert meta("set", "docs", stdin=b"What it is\0 for").returncode == 0
    assert meta("set", "-cmd", "mail", stdin=b"- -a\n- <b>\n").returncode == 0
    assert meta("ls").stdout == b"mail\ndocs\n"
    assert meta("get", "docs").stdout == b"What it is\0 for"
    assert module.read_bytes() == EMPTY + section("yoke.schematics:docs", b"What it is\0 for") + section("yoke.schematics.cmd:mail", rb'["-a","\u003cb\u003e"]')
    assert meta("set", "mail", stdin=b"text").returncode == 0
    assert meta("get", "mail").stdout == b"text"


def test_a_property_that_is_a_command_is_what_the_module_prints(wat):
    module = wat("arguments")
    hangar("schematics", "-wasm", module, "set", "-cmd", "docs", stdin=b'["--docs", "all"]')

    got = hangar("schematics", "--wasm", module, "get", "docs")

    assert got.returncode == 0, got.stderr
    assert got.stdout == b"schematics\0--docs\0all\0"  # The module gets no environment.


def test_a_remote_module_is_read_and_not_set(tmp_path):
    module = EMPTY + section("yoke.schematics:docs", b"remote")
    server = Modules()
    try:
        server.files["/a.wasm"] = module
        url = server.url("/a.wasm")
        assert hangar("schematics", "-wasm", url, "get", "docs", "--module-cache-dir", tmp_path / "cache").stdout == b"remote"
        refused = hangar("schematics", "-wasm", url, "set", "docs", stdin=b"x")
        assert (refused.returncode, refused.stderr) == (1, b"failed to set schematics: cannot set schematics on remote wasm asset\n")
    finally:
        server.close()


@pytest.mark.parametrize("arguments, says", [
    (["sign"], "wasm file must be specified as first argument"), (["sign", "main.wasm"], "key is required"), (["verify", "main.wasm"], "key is required"),
    (["sign", "-key", "/no/such", "main.wasm"], "failed to read private key: open /no/such: "), (["verify", "-key", "/no/such", "main.wasm"], "failed to load public key(s): failed to stat: "),
    (["sign", "-key", "main.wasm", "main.wasm"], "failed to parse private key: failed to decode PEM"), (["sign", "-key", "ed25519.pem", "/no/such"], "failed to read wasm: "),
    (["sign", "-key", "ed25519.pem", "ed25519.pem"], "failed to sign module: is not a WebAssembly module: "),
    (["schematics"], "--wasm is required"), (["meta", "-wasm", "main.wasm"], "no subcommand given to schematics"),
    (["schematics", "-wasm", "main.wasm", "fly"], 'unknown schematics subcommand: "fly"'), (["schematics", "-wasm", "main.wasm", "get"], "name of schematics property is required"),
    (["schematics", "-wasm", "main.wasm", "get", "x"], "failed to get schematics: schematics property not found: x"),
    (["schematics", "-wasm", "main.wasm", "set", "x"], "no data for section"), (["schematics", "-wasm", "/no/such", "ls"], "failed to list schematics: failed to load wasm: "),
    (["schematics", "-wasm", "torn.wasm", "ls"], "failed to list schematics: invalid wasm module: ends early at offset 10")])
def test_what_cannot_be_done_is_exit_code_1_and_told_as_yoke_tells_it(tmp_path, arguments, says):
    keys(tmp_path, "ed25519")
    (tmp_path / "main.wasm").write_bytes(EMPTY)
    (tmp_path / "torn.wasm").write_bytes(EMPTY + b"\0\5\1a")

    done = hangar(*arguments, cwd=tmp_path)

    assert done.returncode == 1 and done.stdout == b""
    assert done.stderr.decode().startswith(says)
