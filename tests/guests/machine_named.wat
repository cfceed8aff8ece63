;; A state machine as Javy exports a function without arguments: it prints a new state. Its _start would trap.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\10\00\00\00\14\00\00\00")
  (data (i32.const 16) "{\"newState\":\"named\"}")
  (func (export "_start") unreachable)
  (func (export "handle-event") (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))
