(module ;; Has 64 MiB of memory before it has run at all.
  (memory (export "memory") 1024)
  (func (export "_start")))
