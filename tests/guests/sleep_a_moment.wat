(module ;; Sleeps for two milliseconds; exits with zero if the event is the expected one.
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (func (export "_start")
    (i64.store (i32.const 0) (i64.const 77))  ;; user data
    (i32.store (i32.const 16) (i32.const 1))  ;; the monotonic clock
    (i64.store (i32.const 24) (i64.const 2000000))
    (if (call $poll (i32.const 0) (i32.const 128) (i32.const 1) (i32.const 256))
      (then (call $exit (i32.const 1))))
    (if (i32.ne (i32.load (i32.const 256)) (i32.const 1)) (then (call $exit (i32.const 2))))
    (if (i64.ne (i64.load (i32.const 128)) (i64.const 77)) (then (call $exit (i32.const 3))))
    (if (i32.load16_u (i32.const 136)) (then (call $exit (i32.const 4))))))
