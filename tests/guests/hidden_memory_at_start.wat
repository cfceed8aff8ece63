(module ;; 64 MiB that are not exported, so that only the engine sees them.
  (memory 1024)
  (func (export "_start")))
