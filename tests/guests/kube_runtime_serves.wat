(module ;; Takes requests for metrics (listener 1) beside a delay (0). The method's first letter says what it does:
  ;;   G answers the request with 200 and "ok", again with 204, and answers 99, which does not exist;
  ;;   H keeps the request; L answers the one that it kept, and not this one;
  ;;   B answers with a status of 0; M with more bytes than an answer may have; N no longer takes requests.
  (import "delay-abi" "delay" (func $delay (param i64) (result i64)))
  (import "turn-abi" "cancel" (func $cancel (param i64)))
  (import "inbound-abi" "serve" (func $serve (param i32) (result i64)))
  (import "inbound-abi" "respond" (func $respond (param i64 i32 i32)))
  (memory (export "memory") 1)
  (global $kept (mut i64) (i64.const 0))
  (data (i32.const 128) "\c8\00\00\00\00\00\00\00\00\00\02\00\00\00\00\00\00\00ok")
  (data (i32.const 160) "\cc\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00")
  (func (export "_start")
    (drop (call $delay (i64.const 86400000)))
    (if (i64.ne (call $serve (i32.const 0)) (i64.const 1)) (then unreachable))
    (if (i64.ne (call $serve (i32.const 0)) (i64.const 1)) (then unreachable))
    (if (i64.ne (call $serve (i32.const 9)) (i64.const -1)) (then unreachable)))
  (func (export "allocate") (param i32) (result i32) (i32.const 1024))
  (func (export "wakeup") (param $id i64) (param $finished i32) (param $at i32) (param $size i32)
    (local $letter i32)
    (if (i64.ne (local.get $id) (i64.const 1)) (then return))
    (if (local.get $finished) (then unreachable))
    (local.set $id (i64.load (local.get $at)))
    (local.set $letter (i32.load8_u (i32.add (local.get $at) (i32.const 16))))
    (if (i32.eq (local.get $letter) (i32.const 71)) ;; G
      (then
        (call $respond (local.get $id) (i32.const 128) (i32.const 20))
        (call $respond (local.get $id) (i32.const 160) (i32.const 18))
        (call $respond (i64.const 99) (i32.const 160) (i32.const 18))))
    (if (i32.eq (local.get $letter) (i32.const 72)) ;; H
      (then (global.set $kept (local.get $id))))
    (if (i32.eq (local.get $letter) (i32.const 76)) ;; L
      (then (call $respond (global.get $kept) (i32.const 128) (i32.const 20))))
    (if (i32.eq (local.get $letter) (i32.const 66)) ;; B
      (then (call $respond (local.get $id) (i32.const 192) (i32.const 18))))
    (if (i32.eq (local.get $letter) (i32.const 77)) ;; M
      (then (call $respond (local.get $id) (i32.const 0) (i32.const 4194305))))
    (if (i32.eq (local.get $letter) (i32.const 78)) ;; N
      (then (call $cancel (i64.const 1))))))
