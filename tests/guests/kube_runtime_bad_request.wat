(module ;; Calls request with bytes that end beyond its memory.
  (import "http-proxy-abi" "request" (func $request (param i32 i32 i32) (result i64)))
  (memory (export "memory") 1)
  (func (export "_start") (drop (call $request (i32.const 65500) (i32.const 37) (i32.const 0))))
  (func (export "allocate") (param i32) (result i32) (i32.const 1024))
  (func (export "wakeup") (param i64 i32 i32 i32)))
