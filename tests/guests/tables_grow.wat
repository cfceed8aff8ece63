(module ;; Has two tables and a memory that grow. Each function returns the size before, or -1.
  (memory (export "memory") 1)
  (table $first 0 funcref)
  (table $second 0 funcref)
  (func (export "grow_first") (param i32) (result i32) (table.grow $first (ref.null func) (local.get 0)))
  (func (export "grow_second") (param i32) (result i32) (table.grow $second (ref.null func) (local.get 0)))
  (func (export "grow_memory") (param i32) (result i32) (memory.grow (local.get 0))))
