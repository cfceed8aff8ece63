(module ;; A library, not a program.
  (memory (export "memory") 1)
  (func (export "main")))
