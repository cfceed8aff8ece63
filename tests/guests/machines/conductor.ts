// A machine whose actions come from spec.input, so that a test says what shall happen without a module of
// its own. `input.rounds` is a list of lists of actions: the first is asked for on PROVISION, the next when the
// events in `input.until` (default: one that ends an action well) have come once for each action.
// Everything that arrives is kept in the context, in its order.
import { assign, createMachine, enqueueActions } from 'xstate';

const ends = ['K8S_RESOURCE_CREATED', 'HEALTH_CHECK_PASSED', 'ACTION_DONE'];

export const machine = createMachine({
  id: 'conductor',
  context: ({ input }) => ({
    rounds: input?.rounds ?? [],
    until: input?.until ?? ends,
    round: 0,
    pending: 0,
    seen: [] as string[],
    input,
  }),
  initial: 'idle',
  on: {
    '*': { actions: 'note' },
  },
  states: {
    idle: {
      on: { PROVISION: { target: 'acting', actions: 'note' } },
    },
    acting: {
      entry: [
        assign({ pending: ({ context }) => context.rounds[context.round]?.length ?? 0 }),
        enqueueActions(({ context, enqueue }) => {
          for (const action of context.rounds[context.round] ?? []) enqueue(action);
        }),
      ],
      always: { guard: ({ context }) => context.round >= context.rounds.length, target: 'done' },
      on: {
        FAILURE: { target: 'failed', actions: 'note' },
        '*': [
          {
            guard: ({ context, event }) => context.until.includes(event.type) && context.pending <= 1,
            target: 'acting',
            reenter: true,
            actions: ['note', assign({ round: ({ context }) => context.round + 1 })],
          },
          {
            guard: ({ context, event }) => context.until.includes(event.type),
            actions: ['note', assign({ pending: ({ context }) => context.pending - 1 })],
          },
          { actions: 'note' },
        ],
      },
    },
    failed: {
      on: { RETRY: { target: 'acting', actions: 'note' } },
    },
    done: { type: 'final' },
  },
  output: ({ context }) => ({ seen: context.seen }),
}, {
  actions: {
    note: assign({
      seen: ({ context, event }) => [
        ...context.seen.slice(-50),
        event.type === 'FAILURE' ? `FAILURE ${event.message}` : event.resourceName ? `${event.type} ${event.resourceName}` : event.type,
      ],
    }),
  },
} as any);
