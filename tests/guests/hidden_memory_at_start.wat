(module ;; Has a memory of 64 MiB that is not exported, so that only the engine sees it.
  (memory 1024)
  (func (export "_start")))
