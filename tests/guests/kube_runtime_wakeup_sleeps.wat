(module ;; When woken, sleeps within its turn for longer than any test waits.
  (import "delay-abi" "delay" (func $delay (param i64) (result i64)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start") (drop (call $delay (i64.const 1))))
  (func (export "allocate") (param i32) (result i32) (i32.const 1024))
  (func (export "wakeup") (param i64 i32 i32 i32)
    (i32.store (i32.const 16) (i32.const 1))  ;; the monotonic clock
    (i64.store (i32.const 24) (i64.const 9223372036854775807))
    (drop (call $poll (i32.const 0) (i32.const 128) (i32.const 1) (i32.const 256)))))
