(module ;; Calls request with bytes that are not a request.
  (import "http-proxy-abi" "request" (func $request (param i32 i32 i32) (result i64)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\04")
  (func (export "_start") (drop (call $request (i32.const 0) (i32.const 8) (i32.const 1))))
  (func (export "allocate") (param i32) (result i32) (i32.const 1024))
  (func (export "wakeup") (param i64 i32 i32 i32)))
