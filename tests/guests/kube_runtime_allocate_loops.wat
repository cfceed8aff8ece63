(module ;; allocate never returns.
  (import "delay-abi" "delay" (func $delay (param i64) (result i64)))
  (memory (export "memory") 1)
  (func (export "_start") (drop (call $delay (i64.const 1))))
  (func (export "allocate") (param i32) (result i32) (loop $again (br $again)) (unreachable))
  (func (export "wakeup") (param i64 i32 i32 i32)))
