;; A state machine whose malloc returns a null pointer.
(module (memory (export "memory") 1) (func (export "malloc") (param i32) (result i32) (i32.const 0)) (func (export "handle_event") (param i32 i32 i32 i32) (result i32) (i32.const 16)))
