(module ;; When woken, calls request with bytes that are not a request.
  (import "delay-abi" "delay" (func $delay (param i64) (result i64)))
  (import "http-proxy-abi" "request" (func $request (param i32 i32 i32) (result i64)))
  (memory (export "memory") 1)
  (func (export "_start") (drop (call $delay (i64.const 1))))
  (func (export "allocate") (param i32) (result i32) (i32.const 1024))
  (func (export "wakeup") (param i64 i32 i32 i32)
    (drop (call $request (i32.const 0) (i32.const 0) (i32.const 0)))))
