;; A state machine that never answers.
(module (memory (export "memory") 1) (func (export "malloc") (param i32) (result i32) (i32.const 4096)) (func (export "handle_event") (param i32 i32 i32 i32) (result i32) (loop $again (br $again)) (i32.const 0)))
