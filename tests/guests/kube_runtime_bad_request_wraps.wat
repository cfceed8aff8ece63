(module ;; Calls request with an address and a size whose sum wraps around.
  (import "http-proxy-abi" "request" (func $request (param i32 i32 i32) (result i64)))
  (memory (export "memory") 1)
  (func (export "_start") (drop (call $request (i32.const 4294967295) (i32.const 2) (i32.const 0))))
  (func (export "allocate") (param i32) (result i32) (i32.const 1024))
  (func (export "wakeup") (param i64 i32 i32 i32)))
