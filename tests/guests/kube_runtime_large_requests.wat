(module ;; Requests "/" ten times in one turn, each with a body of four million bytes.
  (import "http-proxy-abi" "request" (func $request (param i32 i32 i32) (result i64)))
  (memory (export "memory") 63)
  (data (i32.const 64) "\03\00\00\00\00\00\00\00GET\01\00\00\00\00\00\00\00/\00\00\00\00\00\00\00\00\00\09\3d\00\00\00\00\00")
  (func (export "_start")
    (local $count i32)
    (loop $again
      (drop (call $request (i32.const 64) (i32.const 4000036) (i32.const 0)))
      (local.set $count (i32.add (local.get $count) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $count) (i32.const 10)))))
  (func (export "allocate") (param i32) (result i32) (i32.const 1024))
  (func (export "wakeup") (param i64 i32 i32 i32)))
