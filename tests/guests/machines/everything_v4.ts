// XState 4: regions, history, delays, eventless transitions, timers by hand, output.
import { assign, createMachine, actions } from 'xstate';

interface Context { name?: string; log: string[] }

export default createMachine<Context>({
  id: 'everything',
  initial: 'idle',
  context: { log: [] },
  predictableActionArguments: true,
  on: { NOTE: { actions: assign({ log: (context, event: any) => [...context.log, event.text] }) } },
  states: {
    idle: {
      meta: { actions: { type: 'GREET' } },
      entry: { type: 'ANNOUNCE', params: { from: 'entry' } } as any,
      on: { START: 'working', LOOP: 'idle', SKIP: { target: 'deciding' }, THROW: { target: 'done', cond: () => { throw new Error('no luck'); } } },
    },
    working: {
      type: 'parallel',
      meta: { actions: [{ type: 'WORK' }] },
      after: { 60000: { target: 'failed' } },
      on: { PAUSE: 'paused' },
      onDone: 'done',
      states: {
        disk: {
          initial: 'making',
          states: {
            making: { meta: { actions: (context) => [{ type: 'MAKE_DISK', params: { name: context.name } }] }, on: { DISK: 'made' } },
            made: { type: 'final' },
          },
        },
        net: {
          initial: 'making',
          states: {
            making: { meta: { actions: [{ type: 'MAKE_NET' }] }, on: { NET: 'made' } },
            made: { type: 'final' },
          },
        },
      },
    },
    paused: {
      entry: actions.send({ type: 'REMIND', at: 'once' }, { delay: 5000, id: 'reminder' }),
      exit: actions.cancel('reminder'),
      on: { RESUME: 'resumed', REMIND: { actions: assign({ log: (context) => [...context.log, 'reminded'] }) } },
    },
    resumed: { always: 'working' },
    deciding: { always: [{ target: 'done', cond: (context) => context.name === 'short' }, { target: 'failed' }] },
    done: { type: 'final', data: { name: (context: Context) => context.name } as any, meta: { actions: [{ type: 'CELEBRATE' }] } },
    failed: { type: 'final' },
  },
});
