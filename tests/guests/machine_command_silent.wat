;; A state machine as a command that prints nothing.
(module (memory (export "memory") 1) (func (export "_start")))
