(module ;; Grows its table until that is refused; exits with 42.
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (table 1 funcref)
  (func (export "_start")
    (loop (br_if 0 (i32.ne (table.grow 0 (ref.null func) (i32.const 10000)) (i32.const -1))))
    (call $exit (i32.const 42))))
