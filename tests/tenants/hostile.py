"""Modules that no compiler would make, written as bytes."""
import secrets


def number(value):
    """Unsigned LEB128."""
    out = bytearray()
    while True:
        byte, value = value & 0x7F, value >> 7
        out.append(byte | (0x80 if value else 0))
        if not value:
            return bytes(out)


def vector(items):
    return number(len(items)) + b"".join(items)


def section(kind, content):
    return bytes([kind]) + number(len(content)) + content


def export(name, kind, index):
    return number(len(name)) + name.encode() + bytes([kind]) + number(index)


HEADER = b"\0asm\1\0\0\0"
TYPES = section(1, vector([b"\x60\0\0"]))  # () -> ()
MEMORY = section(5, vector([b"\0\1"]))
EXPORTS = section(7, vector([export("memory", 2, 0), export("_start", 0, 0)]))
EMPTY_BODY = b"\x02\0\x0b"


def deep_control_flow(depth, blocks, salt=0):
    """One function of nested blocks with a jump table to each: it takes a compiler more than linear time."""
    targets = number(depth - 1) + b"".join(number(index) for index in range(depth))
    inner = b"\x41\0\x0e" + targets
    code = (b"\x02\x40" * depth + inner + b"\x0b" * depth) * blocks + b"\x0b"
    body = number(len(code) + 1) + b"\0" + code
    return HEADER + TYPES + section(3, vector([b"\0"])) + MEMORY + EXPORTS + section(10, vector([body])) + salted(salt)


def salted(salt):
    """A section that no code reads, so that the digest differs."""
    text = str(salt).encode()
    return section(0, number(4) + b"salt" + text)


def padded(size, salt=0):
    """A program that does nothing and has `size` bytes."""
    return HEADER + TYPES + section(3, vector([b"\0"])) + MEMORY + EXPORTS + section(10, vector([EMPTY_BODY])) + section(0, number(3) + b"pad" + bytes(size)) + salted(salt)


def incompressible(size):
    """A program that does nothing and takes `size` bytes compressed, too; another one each time."""
    return HEADER + TYPES + section(3, vector([b"\0"])) + MEMORY + EXPORTS + section(10, vector([EMPTY_BODY])) + section(0, number(3) + b"pad" + secrets.token_bytes(size))


def prints(text, loops=1):
    """WAT of a program that counts `loops` down, prints `text` and ends."""
    data = "".join(f"\\{byte:02x}" for byte in text.encode())
    size = len(text.encode())
    return f"""(module
      (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
      (memory (export "memory") {size // 65536 + 2})
      (data (i32.const 1024) "{data}")
      (func (export "_start") (local $left i32)
        (local.set $left (i32.const {loops}))
        (loop $burn
          (br_if $burn (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
        (i32.store (i32.const 0) (i32.const 1024))
        (i32.store (i32.const 4) (i32.const {size}))
        (loop $again
          (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
          (i32.store (i32.const 0) (i32.add (i32.load (i32.const 0)) (i32.load (i32.const 8))))
          (i32.store (i32.const 4) (i32.sub (i32.load (i32.const 4)) (i32.load (i32.const 8))))
          (br_if $again (i32.load (i32.const 4))))))"""
