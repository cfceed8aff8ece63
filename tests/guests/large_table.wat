(module ;; Has more table elements than a guest may have.
  (memory (export "memory") 1)
  (table 600000 funcref)
  (func (export "_start")))
