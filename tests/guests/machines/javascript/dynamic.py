"""Writes, as text (wat), the module that Javy 9 makes of a bundle when the engine is linked dynamically:

    dynamic.py BYTECODE NAMESPACE [FUNCTION]...

Its bytecode is a passive data segment, which `_start` copies into the plugin's memory and lets the plugin
evaluate. Each FUNCTION that the bundle exports becomes an export of its own (handleEvent: handle-event), which
lets the plugin call it.
"""
import re
import sys

COPY = """
    (local.tee ${0} (call $realloc (i32.const 0) (i32.const 0) (i32.const 1) (i32.const {1})))
    (memory.init ${0} (i32.const 0) (i32.const {1}))"""
INVOKE = """
    (call $invoke (local.get $bytecode) (i32.const {}) (i32.const {}) {} (i32.const {})))"""


def segment(name, content):
    return '\n  (data ${} "{}")'.format(name, "".join(f"\\{byte:02x}" for byte in content))


def main():
    path, namespace, *functions = sys.argv[1:]
    with open(path, "rb") as file:
        bytecode = file.read()
    size = len(bytecode)
    text = f"""(module
  (import "{namespace}" "cabi_realloc" (func $realloc (param i32 i32 i32 i32) (result i32)))
  (import "{namespace}" "invoke" (func $invoke (param i32 i32 i32 i32 i32)))
  (import "{namespace}" "memory" (memory 0))""" + segment("bytecode", bytecode)
    for number, name in enumerate(functions):
        text += segment(f"name{number}", name.encode())
    for number, name in enumerate(functions):
        exported = re.sub("([A-Z])", lambda letter: "-" + letter.group(1).lower(), name)
        text += f'\n  (func (export "{exported}") (local $bytecode i32) (local $name{number} i32)'
        text += COPY.format("bytecode", size) + "\n    (data.drop $bytecode)"
        text += COPY.format(f"name{number}", len(name)) + f"\n    (data.drop $name{number})"
        text += INVOKE.format(size, 1, f"(local.get $name{number})", len(name))
    text += '\n  (func (export "_start") (local $bytecode i32)' + COPY.format("bytecode", size)
    text += INVOKE.format(size, 0, "(i32.const 0)", 0) + ")\n"
    sys.stdout.write(text)


main()
