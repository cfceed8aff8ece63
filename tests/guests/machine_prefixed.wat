;; A state machine whose answer begins with its size, and whose initial state has a function of its own.
(module
  (memory (export "memory") 1)
  (func (export "allocate") (param i32) (result i32) (i32.const 4096))
  (data (i32.const 16) "\14\00\00\00{\"newState\":\"after\"}")
  (data (i32.const 64) "\14\00\00\00{\"newState\":\"first\"}")
  (func (export "initial_state") (param i32 i32) (result i32) (i32.const 64))
  (func (export "handle_event") (param i32 i32 i32 i32) (result i32) (i32.const 16)))
