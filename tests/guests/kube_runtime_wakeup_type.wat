(module ;; wakeup takes ids of 32 bits.
  (memory (export "memory") 1)
  (func (export "_start"))
  (func (export "allocate") (param i32) (result i32) (i32.const 1024))
  (func (export "wakeup") (param i32 i32 i32 i32)))
