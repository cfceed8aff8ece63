(module ;; When woken, grows its memory as far as it can, writes to each page, and exits with the number of pages of
  ;; 64 KiB it has.
  (import "delay-abi" "delay" (func $delay (param i64) (result i64)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (func (export "_start") (drop (call $delay (i64.const 1))))
  (func (export "allocate") (param i32) (result i32) (i32.const 1024))
  (func (export "wakeup") (param i64 i32 i32 i32)
    (loop $again
      (i32.store (i32.mul (i32.sub (memory.size) (i32.const 1)) (i32.const 65536)) (i32.const 1))
      (br_if $again (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
    (call $exit (memory.size))))
