(module ;; Can be woken and has no memory for answers.
  (memory (export "memory") 1)
  (func (export "_start"))
  (func (export "wakeup") (param i64 i32 i32 i32)))
