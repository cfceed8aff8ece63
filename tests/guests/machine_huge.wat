;; A state machine whose answer begins with its size: four gigabytes.
(module (memory (export "memory") 1) (func (export "malloc") (param i32) (result i32) (i32.const 4096)) (data (i32.const 16) "\00\ff\ff\ff") (func (export "handle_event") (param i32 i32 i32 i32) (result i32) (i32.const 16)))
