// XState 5 with features that are hard to store and restore: two regions at once, a pause that remembers its
// place, delays, and an output at the end. It requests almost no action, so that only the machine is tested.
import { assign, setup } from 'xstate';

export const machine = setup({
  types: {} as { context: { image: string; soak: number; notes: string[] }; input: { image?: string; soakMilliseconds?: number } },
  delays: { soak: ({ context }) => context.soak },
  actions: { EMIT: (_, params: { reason: string; message?: string }) => {} },
}).createMachine({
  id: 'rollout',
  context: ({ input }) => ({ image: input?.image ?? 'none', soak: input?.soakMilliseconds ?? 1000, notes: [] }),
  initial: 'waiting',
  states: {
    waiting: { on: { PROVISION: 'rolling' } },
    rolling: {
      initial: 'regions',
      on: { PAUSE: 'paused', ABORT: 'aborted' },
      states: {
        regions: {
          type: 'parallel',
          states: {
            web: {
              initial: 'canary',
              states: {
                canary: { entry: { type: 'EMIT', params: { reason: 'Canary', message: 'web' } }, after: { soak: 'everywhere' } },
                everywhere: { type: 'final' },
              },
            },
            worker: {
              initial: 'draining',
              states: {
                draining: { on: { DRAINED: 'updated' } },
                updated: { type: 'final' },
              },
            },
          },
          onDone: '#rollout.verifying',
        },
        resume: { type: 'history', history: 'deep', target: 'regions' },
      },
    },
    paused: {
      entry: assign({ notes: ({ context }) => [...context.notes, 'paused'] }),
      on: { RESUME: 'rolling.resume' },
    },
    verifying: {
      entry: { type: 'EMIT', params: ({ context }) => ({ reason: 'Verifying', message: context.image }) },
      after: { 200: 'released' },
    },
    released: { type: 'final' },
    aborted: { type: 'final' },
  },
  output: ({ context }) => ({ image: context.image, notes: context.notes }),
});
