(module ;; Makes the system calls that its stdin lists, where hangar-guest-probe runs it, and prints their results.
  ;; Stdin: 4096 bytes for address 4096, then records of 64 bytes: number, six arguments, a mask. To arguments whose
  ;; bit in the mask is set, the native address of the memory is added; bit 6: reads the word at the first argument;
  ;; bit 7: aborts.
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "probe" "call" (func $call (param i64 i64 i64 i64 i64 i64 i64) (result i64)))
  (import "probe" "address" (func $address (result i64)))
  (import "probe" "peek" (func $peek (param i64) (result i64)))
  (import "probe" "abort" (func $abort (result i64)))
  (memory (export "memory") 1)
  ;; Reads `size` bytes to `at`; returns how many there were.
  (func $fill (param $at i32) (param $size i32) (result i32)
    (i32.store (i32.const 0) (local.get $at))
    (i32.store (i32.const 4) (local.get $size))
    (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
    (i32.load (i32.const 8)))
  ;; Returns argument number `index` of the record.
  (func $argument (param $index i32) (result i64)
    (i64.add
      (i64.load offset=1032 (i32.shl (local.get $index) (i32.const 3)))
      (i64.mul
        (call $address)
        (i64.and (i64.shr_u (i64.load (i32.const 1080)) (i64.extend_i32_u (local.get $index))) (i64.const 1)))))
  (func (export "_start")
    (drop (call $fill (i32.const 4096) (i32.const 4096)))
    (block $end
      (loop $again
        (br_if $end (i32.ne (call $fill (i32.const 1024) (i32.const 64)) (i32.const 64)))
        (if (i32.wrap_i64 (i64.and (i64.load (i32.const 1080)) (i64.const 128))) (then (drop (call $abort))))
        (if (i64.eqz (i64.and (i64.load (i32.const 1080)) (i64.const 64)))
          (then
            (i64.store (i32.const 1088)
              (call $call (i64.load (i32.const 1024))
                (call $argument (i32.const 0)) (call $argument (i32.const 1)) (call $argument (i32.const 2))
                (call $argument (i32.const 3)) (call $argument (i32.const 4)) (call $argument (i32.const 5)))))
          (else (i64.store (i32.const 1088) (call $peek (call $argument (i32.const 0))))))
        (i32.store (i32.const 0) (i32.const 1088))
        (i32.store (i32.const 4) (i32.const 8))
        (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
        (br $again)))))
