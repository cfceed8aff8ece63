(module ;; allocate returns bytes that end beyond the memory.
  (import "delay-abi" "delay" (func $delay (param i64) (result i64)))
  (memory (export "memory") 1)
  (func (export "_start") (drop (call $delay (i64.const 1))))
  (func (export "allocate") (param i32) (result i32) (i32.const 65535))
  (func (export "wakeup") (param i64 i32 i32 i32)))
