(module ;; Takes webhooks, and waits for nothing else. The first letter of the path says what it does:
  ;;   /o answers with 200 and "ok", and again; /n never answers; /d answers the one before it; /c no longer takes requests;
  ;;   /m answers with more bytes than an answer may have.
  (import "turn-abi" "cancel" (func $cancel (param i64)))
  (import "inbound-abi" "serve" (func $serve (param i32) (result i64)))
  (import "inbound-abi" "respond" (func $respond (param i64 i32 i32)))
  (memory (export "memory") 1)
  (global $before (mut i64) (i64.const 0))
  (data (i32.const 128) "\c8\00\00\00\00\00\00\00\00\00\02\00\00\00\00\00\00\00ok")
  (func (export "_start")
    (if (i64.ne (call $serve (i32.const 1)) (i64.const 0)) (then unreachable)))
  (func (export "allocate") (param i32) (result i32) (i32.const 1024))
  (func (export "wakeup") (param $id i64) (param $finished i32) (param $at i32) (param $size i32)
    (local $letter i32)
    (if (i64.ne (local.get $id) (i64.const 0)) (then unreachable))
    (local.set $id (i64.load (local.get $at)))
    ;; id, length of "POST", "POST", length of the path, "/"
    (local.set $letter (i32.load8_u (i32.add (local.get $at) (i32.const 29))))
    (if (i32.eq (local.get $letter) (i32.const 111)) ;; o
      (then
        (call $respond (local.get $id) (i32.const 128) (i32.const 20))
        (call $respond (local.get $id) (i32.const 128) (i32.const 20))))
    (if (i32.eq (local.get $letter) (i32.const 109)) ;; m
      (then (call $respond (local.get $id) (i32.const 0) (i32.const 4194305))))
    (if (i32.eq (local.get $letter) (i32.const 100)) ;; d
      (then (call $respond (global.get $before) (i32.const 128) (i32.const 20))))
    (if (i32.eq (local.get $letter) (i32.const 99)) ;; c
      (then (call $cancel (i64.const 0))))
    (global.set $before (local.get $id))))
