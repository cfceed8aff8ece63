(module ;; Imports functions that flights do not get.
  (import "env" "foo" (func (param i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start")))
