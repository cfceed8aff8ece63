(module ;; Waits for a delay, then exits with 5.
  (import "delay-abi" "delay" (func $delay (param i64) (result i64)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (func (export "_start") (drop (call $delay (i64.const 1))))
  (func (export "allocate") (param i32) (result i32) (i32.const 1024))
  (func (export "wakeup") (param i64 i32 i32 i32)
    (drop (call $delay (i64.const 1))) (call $exit (i32.const 5))))
