// The machine of the workflows benchmark: it waits, and every signal takes it to its other state. It asks the
// host for nothing, so that a transition costs what the host itself does for one.
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
