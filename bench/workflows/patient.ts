// The machine of the workflows benchmark: it waits, and every signal takes it to its other state. It requests
// no action, so that a transition costs only the host's own work.
import { assign, createMachine } from 'xstate';

export const machine = createMachine({
  id: 'patient',
  context: ({ input }) => ({ team: input?.team ?? 'none', turns: 0 }),
  initial: 'idle',
  states: {
    idle: { on: { PROVISION: 'left' } },
    left: { on: { TURN: { target: 'right', actions: 'count' } } },
    right: { on: { TURN: { target: 'left', actions: 'count' } } },
  },
}, {
  actions: { count: assign({ turns: ({ context }) => context.turns + 1 }) },
} as any);
