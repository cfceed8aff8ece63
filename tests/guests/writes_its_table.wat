;; Changes its table, which a snapshot of memory and globals would miss.
(module
  (memory (export "memory") 1)
  (table $table 2 2 funcref)
  (func $one (result i32) (i32.const 1))
  (func $two (result i32) (i32.const 2))
  (elem (table $table) (i32.const 0) func $one $two)
  (func (export "swap") (table.set $table (i32.const 0) (ref.func $two)))
  (func (export "call") (result i32) (call_indirect $table (result i32) (i32.const 0))))
