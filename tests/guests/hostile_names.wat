(module ;; Has function names that would forge a message or take for ever to demangle.
  (memory (export "memory") 1)
  (func $_ZN1aIS_S_ES_IS0_S0_ES1_IS1_S1_ES2_IS2_S2_E unreachable)
  (func (export "_start") (call $_ZN1aIS_S_ES_IS0_S0_ES1_IS1_S1_ES2_IS2_S2_E)))
