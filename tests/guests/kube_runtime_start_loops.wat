(module ;; Exports wakeup; _start never returns.
  (memory (export "memory") 1)
  (func $spin (export "_start") (loop $again (br $again)))
  (func (export "allocate") (param i32) (result i32) (i32.const 1024))
  (func (export "wakeup") (param i64 i32 i32 i32)))
