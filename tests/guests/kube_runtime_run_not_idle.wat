(module ;; Is to be run until it is idle, and has no way to say that it is.
  (memory (export "memory") 1)
  (func (export "_start"))
  (func (export "allocate") (param i32) (result i32) (i32.const 1024))
  (func (export "wakeup") (param i64 i32 i32 i32))
  (func (export "run_until_idle")))
