;; A state machine that returns address and size in one number, and sets itself up in _initialize.
(module
  (memory (export "memory") 1)
  (func (export "_initialize") (i32.store8 (i32.const 30) (i32.const 0x37)))
  (func (export "malloc") (param i32) (result i32) (i32.const 4096))
  (data (i32.const 16) "{\"newState\": 00}")
  (func (export "handle_event") (param i32 i32 i32 i32) (result i64)
    (i32.store8 (i32.const 29) (i32.const 0x20))
    (i64.or (i64.shl (i64.const 16) (i64.const 32)) (i64.const 16))))
