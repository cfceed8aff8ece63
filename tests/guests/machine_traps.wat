;; A state machine that prints a line and traps.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "the sails are torn\n")
  (data (i32.const 0) "\10\00\00\00\13\00\00\00")
  (func (export "malloc") (param i32) (result i32) (i32.const 4096))
  (func (export "handle_event") (param i32 i32 i32 i32) (result i32)
    (drop (call $write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 8)))
    unreachable))
