;; A hostile state machine: it keeps a secret wherever it can, and answers with what it finds of earlier secrets.
(module
  (memory (export "memory") 2)
  (global $secret (mut i32) (i32.const 0))
  (func (export "_initialize"))
  (func (export "malloc") (param i32) (result i32) (i32.const 65536))
  (data (i32.const 16) "{\"newState\":\"000\"}\00")
  ;; One digit each: from the global, from memory with a data segment, from memory without one.
  (func (export "handle_event") (param i32 i32 i32 i32) (result i32)
    (i32.store8 (i32.const 29) (i32.add (i32.const 48) (global.get $secret)))
    (i32.store8 (i32.const 30) (i32.add (i32.const 48) (i32.load8_u (i32.const 64))))
    (i32.store8 (i32.const 31) (i32.add (i32.const 48) (i32.load8_u (i32.const 40000))))
    (global.set $secret (i32.const 7))
    (i32.store8 (i32.const 64) (i32.const 8))
    (i32.store8 (i32.const 40000) (i32.const 9))
    (i32.const 16)))
