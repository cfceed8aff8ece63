;; A state machine without an allocator for its arguments.
(module (memory (export "memory") 1) (func (export "handle_event") (param i32 i32 i32 i32) (result i32) (i32.const 16)))
