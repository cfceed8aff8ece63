(module ;; Runs until idle, as programs with a scheduler of their own do. Each poll prints the number of events and
  ;; the source of the first: "c" for the clock, "i" for the idle descriptor. Each answer prints "w" and its id.
  ;;   1st run: requests a watch (0) and a delay (1); polls without waiting, then for 1.5 s.
  ;;   2nd run: polls for 2 s.
  ;;   3rd run: cancels 0, twice, and 7, which does not exist; polls without a clock.
  ;;   Later runs: poll without a clock.
  (import "http-proxy-abi" "request" (func $request (param i32 i32 i32) (result i64)))
  (import "delay-abi" "delay" (func $delay (param i64) (result i64)))
  (import "turn-abi" "idle_descriptor" (func $idle_descriptor (result i32)))
  (import "turn-abi" "cancel" (func $cancel (param i64)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll_oneoff (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (global $runs (mut i32) (i32.const 0))
  (data (i32.const 64) "\03\00\00\00\00\00\00\00GET\01\00\00\00\00\00\00\00/\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00")

  ;; Prints two characters and a newline.
  (func $print (param $first i32) (param $second i32)
    (i32.store8 (i32.const 16) (local.get $first))
    (i32.store8 (i32.const 17) (local.get $second))
    (i32.store8 (i32.const 18) (i32.const 10))
    (i32.store (i32.const 32) (i32.const 16))
    (i32.store (i32.const 36) (i32.const 3))
    (drop (call $write (i32.const 1) (i32.const 32) (i32.const 1) (i32.const 40))))

  ;; Memory: subscriptions at 256, events at 512, the number of events at 640.
  (func $poll (param $count i32) (param $nanoseconds i64)
    (i64.store (i32.const 256) (i64.const 105))
    (i32.store8 (i32.const 264) (i32.const 1))
    (i32.store (i32.const 272) (call $idle_descriptor))
    (i64.store (i32.const 304) (i64.const 99))
    (i32.store8 (i32.const 312) (i32.const 0))
    (i32.store (i32.const 320) (i32.const 1))
    (i64.store (i32.const 328) (local.get $nanoseconds))
    (if (call $poll_oneoff (i32.const 256) (i32.const 512) (local.get $count) (i32.const 640)) (then unreachable))
    (call $print (i32.add (i32.const 48) (i32.load (i32.const 640))) (i32.load8_u (i32.const 512))))

  (func (export "_initialize"))
  (func (export "allocate") (param i32) (result i32) (i32.const 1024))
  (func (export "wakeup") (param $id i64) (param i32 i32 i32)
    (call $print (i32.const 119) (i32.add (i32.const 48) (i32.wrap_i64 (local.get $id)))))
  (func (export "run_until_idle")
    (global.set $runs (i32.add (global.get $runs) (i32.const 1)))
    (if (i32.eq (global.get $runs) (i32.const 1))
      (then
        (drop (call $request (i32.const 64) (i32.const 36) (i32.const 1)))
        (drop (call $delay (i64.const 60000)))
        (call $poll (i32.const 2) (i64.const 0))
        (call $poll (i32.const 2) (i64.const 1500000000))
        return))
    (if (i32.eq (global.get $runs) (i32.const 2))
      (then (call $poll (i32.const 2) (i64.const 2000000000)) return))
    (if (i32.eq (global.get $runs) (i32.const 3))
      (then (call $cancel (i64.const 0)) (call $cancel (i64.const 0)) (call $cancel (i64.const 7))))
    (call $poll (i32.const 1) (i64.const 0))))
