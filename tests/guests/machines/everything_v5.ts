// XState 5: the same machine as in everything_v4.ts, as users of this version write it.
import { assign, cancel, raise, setup } from 'xstate';

export const machine = setup({
  types: {} as { context: { name?: string; log: string[] }; input: { name?: string }; events: any },
  actions: { ANNOUNCE: (_, params: { from: string }) => { throw new Error('the host does this'); } },
  delays: { long: 60000 },
}).createMachine({
  id: 'everything',
  initial: 'idle',
  context: ({ input }) => ({ name: input?.name, log: [] }),
  output: ({ context }) => ({ name: context.name }),
  on: { NOTE: { actions: assign({ log: ({ context, event }) => [...context.log, event.text] }) } },
  states: {
    idle: {
      meta: { actions: { type: 'GREET' } },
      entry: { type: 'ANNOUNCE', params: { from: 'entry' } },
      on: {
        START: 'working',
        LOOP: { target: 'idle', reenter: true },
        SKIP: 'deciding',
        THROW: { target: 'done', guard: () => { throw new Error('no luck'); } },
      },
    },
    working: {
      type: 'parallel',
      meta: { actions: [{ type: 'WORK' }] },
      after: { long: { target: 'failed' } },
      on: { PAUSE: 'paused' },
      onDone: 'done',
      states: {
        disk: {
          initial: 'making',
          states: {
            making: { meta: { actions: ({ context }: any) => [{ type: 'MAKE_DISK', params: { name: context.name } }] }, on: { DISK: 'made' } },
            made: { type: 'final' },
          },
        },
        net: {
          initial: 'making',
          states: { making: { entry: 'MAKE_NET' as any, on: { NET: 'made' } }, made: { type: 'final' } },
        },
      },
    },
    paused: {
      entry: [raise({ type: 'REMIND', at: 'once' } as any, { delay: 5000, id: 'reminder' }), () => console.log('paused')],
      exit: cancel('reminder'),
      on: { RESUME: 'resumed', REMIND: { actions: assign({ log: ({ context }) => [...context.log, 'reminded'] }) } },
    },
    resumed: { always: 'working' },
    deciding: { always: [{ target: 'done', guard: ({ context }) => context.name === 'short' }, { target: 'failed' }] },
    done: { type: 'final', meta: { actions: [{ type: 'CELEBRATE' }] } },
    failed: { type: 'final' },
  },
});
