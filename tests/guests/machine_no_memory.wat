;; A state machine that exports no memory.
(module (func (export "malloc") (param i32) (result i32) (i32.const 4096)) (func (export "handle_event") (param i32 i32 i32 i32) (result i32) (i32.const 16)))
