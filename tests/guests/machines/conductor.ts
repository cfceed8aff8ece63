// A machine whose actions come from spec.input, so that a test chooses them without a module of its own.
// `input.rounds` is a list of lists of actions: PROVISION requests the first list; each next one follows when all
// actions of the one before have succeeded. The context keeps every event that arrives, in order.
import { assign, createMachine, enqueueActions } from 'xstate';

// The result of a requested action has a number; the host's own events have none.
const isEnd = ({ event }) => event.actionId !== undefined;

function wordsOf(event): string {
  if (event.type === 'FAILURE') return `FAILURE (${event.attempts}) ${event.message}`;
  const words = event.resourceName ? `${event.type} ${event.resourceName}` : event.type;
  return event.type.startsWith('K8S_') && !isEnd({ event }) ? `change: ${words}` : words;
}

export const machine = createMachine({
  id: 'conductor',
  context: ({ input }) => ({
    rounds: input?.rounds ?? [],
    round: 0,
    pending: 0,
    seen: [] as string[],
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
            guard: (args) => isEnd(args) && args.context.pending <= 1,
            target: 'acting',
            reenter: true,
            actions: ['note', assign({ round: ({ context }) => context.round + 1 })],
          },
          {
            guard: isEnd,
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
      seen: ({ context, event }) => [...context.seen.slice(-50), wordsOf(event)],
    }),
  },
} as any);
