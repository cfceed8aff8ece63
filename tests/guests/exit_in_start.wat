(module ;; Exits with 5 in its start section.
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (func $leave (call $exit (i32.const 5)))
  (start $leave)
  (func (export "_start") unreachable))
