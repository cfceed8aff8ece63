(module ;; A reactor without _start, which requests a delay in _initialize.
  (import "delay-abi" "delay" (func $delay (param i64) (result i64)))
  (memory (export "memory") 1)
  (func (export "_initialize") (drop (call $delay (i64.const 1))))
  (func (export "allocate") (param i32) (result i32) (i32.const 1024))
  (func (export "wakeup") (param i64 i32 i32 i32)))
