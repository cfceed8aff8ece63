// XState 5: a machine with children. `worker` is invoked and makes a ConfigMap, rests, and ends with output; `watcher` is
// spawned and has a child of its own. The same machine as in family_v4.ts.
import { assign, sendParent, sendTo, setup, stopChild } from 'xstate';

const fails = () => { throw new Error('bad disk'); };

const disk = setup({
  types: {} as { context: any; events: any; input: any },
  delays: { rest: ({ context }) => context.rest },
}).createMachine({
  id: 'disk',
  context: ({ input }) => ({ name: input.name, rest: input.rest }),
  initial: 'making',
  output: ({ context }) => ({ resource: context.resource }),
  states: {
    making: {
      meta: {
        actions: ({ context }: any) => [{
          type: 'APPLY', params: { manifest: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: context.name }, data: { made: 'yes' } } },
        }],
      },
      on: {
        K8S_RESOURCE_CREATED: { target: 'resting', actions: assign({ resource: ({ event }) => event.resourceName }) },
        FAILURE: { actions: fails },
      },
    },
    resting: {
      after: { rest: 'made' },
      on: { FAIL: { actions: fails }, PING: { actions: sendParent({ type: 'PONG' }) } },
    },
    made: { type: 'final' },
  },
});

const clock = setup({}).createMachine({
  id: 'clock',
  initial: 'on',
  states: { on: { after: { 600000: { target: 'on', reenter: true, actions: sendParent({ type: 'TICK' }) } } } },
});

const watcher = setup({
  types: {} as { context: any; events: any; input: any },
  actors: { clock },
}).createMachine({
  id: 'watcher',
  context: ({ input }) => ({ count: 0, parent: input.parent }),
  invoke: { id: 'clock', src: 'clock' },
  on: {
    ADD: {
      actions: [
        assign({ count: ({ context }) => context.count + 1 }),
        sendTo(({ context }) => context.parent, ({ context }) => ({ type: 'COUNTED', count: context.count })),
      ],
    },
    TICK: { actions: sendTo(({ context }) => context.parent, { type: 'TICKED' }) },
  },
});

export default setup({
  types: {} as { context: any; events: any; input: any },
  actors: { disk, watcher },
}).createMachine({
  id: 'family',
  context: ({ input }) => ({ name: input.name ?? 'made', rest: input.rest ?? 1000, seen: [] as string[] }),
  initial: 'idle',
  output: ({ context }) => ({ made: context.made, seen: context.seen }),
  on: { PONG: { actions: assign({ seen: ({ context }) => [...context.seen, 'pong'] }) } },
  states: {
    idle: { on: { PROVISION: 'making', AGAIN: 'making' } },
    making: {
      invoke: {
        id: 'worker',
        src: 'disk',
        systemId: 'theDisk',
        input: ({ context }) => ({ name: context.name, rest: context.rest }),
        onDone: { target: 'watching', actions: assign({ made: ({ event }) => event.output.resource }) },
        onError: { target: 'broken', actions: assign({ why: ({ event }: any) => event.error.message }) },
      },
      on: {
        GIVE_UP: 'idle',
        FAIL: { actions: sendTo(({ system }) => system.get('theDisk'), { type: 'FAIL' }) },
        PING: { actions: sendTo('worker', { type: 'PING' }) },
      },
    },
    watching: {
      entry: assign({ watcher: ({ spawn, self }) => spawn('watcher', { id: 'watcher', input: { parent: self } }) }),
      on: {
        ADD: { actions: sendTo(({ context }) => context.watcher, { type: 'ADD' }) },
        LATER: { actions: sendTo('watcher', { type: 'ADD' }, { id: 'later', delay: 5000 }) },
        COUNTED: { actions: assign({ seen: ({ context, event }) => [...context.seen, `counted ${event.count}`] }) },
        TICKED: { actions: assign({ seen: ({ context }) => [...context.seen, 'ticked'] }) },
        STOP: { actions: stopChild('watcher') },
        END: 'done',
      },
    },
    broken: { on: { RETRY: 'making' } },
    done: { type: 'final' },
  },
});
