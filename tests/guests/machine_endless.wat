;; A state machine whose answer has no terminating null byte.
(module (memory (export "memory") 1) (func (export "malloc") (param i32) (result i32) (i32.const 4096)) (func $fill (memory.fill (i32.const 0) (i32.const 0x20) (i32.const 65536))) (start $fill) (func (export "handle_event") (param i32 i32 i32 i32) (result i32) (i32.const 16)))
