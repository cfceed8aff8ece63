(module ;; Imports the idle descriptor, but does not export run_until_idle.
  (import "turn-abi" "idle_descriptor" (func (result i32)))
  (memory (export "memory") 1)
  (func (export "_start"))
  (func (export "allocate") (param i32) (result i32) (i32.const 1024))
  (func (export "wakeup") (param i64 i32 i32 i32)))
