;; Passive segments stay in the module at their indices, whatever active segments are around them.
(module
  (memory (export "memory") 1)
  (data (i32.const 8) "active")
  (data $kept "passive")
  (data (i32.const 32) "active too")
  (func (export "copy") (memory.init $kept (i32.const 64) (i32.const 0) (i32.const 7)))
  (func (export "load") (param $address i32) (result i64) (i64.load (local.get $address))))
