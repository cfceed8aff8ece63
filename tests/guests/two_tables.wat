(module ;; Has two tables, more than a slot of the pool has. It runs all the same.
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (table 1 funcref)
  (table 1 funcref)
  (func (export "_start") (call $exit (i32.const 6))))
