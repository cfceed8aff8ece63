// XState 4: a machine that invokes a promise, which no state can hold.
import { createMachine } from 'xstate';

export default createMachine({
  id: 'hopeful',
  predictableActionArguments: true,
  initial: 'idle',
  states: { idle: { on: { PROVISION: 'asking' } }, asking: { invoke: { src: 'fetchQuota', onDone: 'idle' } } },
}, { services: { fetchQuota: async () => 1 } });
