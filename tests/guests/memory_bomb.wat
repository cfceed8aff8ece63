(module ;; Grows its memory until that is refused; exits with 42.
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (func (export "_start")
    (loop (br_if 0 (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))
    (call $exit (i32.const 42))))
