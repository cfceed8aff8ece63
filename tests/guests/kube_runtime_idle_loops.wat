(module ;; Runs until idle, and never is: as a program does whose scheduler has a task that never waits.
  (import "turn-abi" "idle_descriptor" (func $idle_descriptor (result i32)))
  (memory (export "memory") 1)
  (func (export "_initialize"))
  (func (export "allocate") (param i32) (result i32) (i32.const 1024))
  (func (export "wakeup") (param i64 i32 i32 i32))
  (func $spin (loop $again (br $again)))
  (func (export "run_until_idle") (drop (call $idle_descriptor)) (call $spin)))
