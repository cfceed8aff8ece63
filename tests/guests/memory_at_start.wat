(module ;; 64 MiB before it has run at all.
  (memory (export "memory") 1024)
  (func (export "_start")))
