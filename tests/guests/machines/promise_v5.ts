// XState 5: a machine that invokes a promise, which no state can hold.
import { fromPromise, setup } from 'xstate';

export default setup({ actors: { fetchQuota: fromPromise(async () => 1) } }).createMachine({
  id: 'hopeful',
  initial: 'idle',
  states: { idle: { on: { PROVISION: 'asking' } }, asking: { invoke: { src: 'fetchQuota', onDone: 'idle' } } },
});
