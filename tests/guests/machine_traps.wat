;; A state machine that traps.
(module (memory (export "memory") 1) (func (export "malloc") (param i32) (result i32) (i32.const 4096)) (func (export "handle_event") (param i32 i32 i32 i32) (result i32) unreachable))
