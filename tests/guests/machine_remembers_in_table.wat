;; As machine_remembers.wat, with the secret in a table.
(module
  (memory (export "memory") 2)
  (table $table 2 2 funcref)
  (func $none (result i32) (i32.const 48))
  (func $secret (result i32) (i32.const 57))
  (elem (table $table) (i32.const 0) func $none $secret)
  (func (export "_initialize"))
  (func (export "malloc") (param i32) (result i32) (i32.const 65536))
  (data (i32.const 16) "{\"newState\":\"0\"}\00")
  (func (export "handle_event") (param i32 i32 i32 i32) (result i32)
    (i32.store8 (i32.const 29) (call_indirect $table (result i32) (i32.const 0)))
    (table.set $table (i32.const 0) (ref.func $secret))
    (i32.const 16)))
