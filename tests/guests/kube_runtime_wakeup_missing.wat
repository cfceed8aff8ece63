(module ;; Exports allocate, but no wakeup.
  (memory (export "memory") 1)
  (func (export "_start"))
  (func (export "allocate") (param i32) (result i32) (i32.const 1024)))
