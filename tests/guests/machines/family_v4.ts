// XState 4: a machine with children. The same machine as in family_v5.ts, as users of this version
// write it.
import { actions, assign, createMachine, spawn } from 'xstate';

const { sendParent, sendTo, stop } = actions;
const fails = () => { throw new Error('bad disk'); };

const disk = createMachine<any, any>({
  id: 'disk',
  predictableActionArguments: true,
  initial: 'making',
  states: {
    making: {
      meta: {
        actions: (context: any) => [{
          type: 'APPLY', params: { manifest: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: context.name }, data: { made: 'yes' } } },
        }],
      },
      on: {
        K8S_RESOURCE_CREATED: { target: 'resting', actions: assign({ resource: (_, event: any) => event.resourceName }) },
        FAILURE: { actions: fails },
      },
    },
    resting: {
      after: { rest: 'made' },
      on: { FAIL: { actions: fails }, PING: { actions: sendParent('PONG') } },
    },
    made: { type: 'final', data: { resource: (context: any) => context.resource } },
  },
}, { delays: { rest: (context: any) => context.rest } });

const clock = createMachine({
  id: 'clock',
  predictableActionArguments: true,
  initial: 'on',
  states: { on: { after: { 600000: { target: 'on', actions: sendParent('TICK') } } } },
});

const watcher = createMachine<any, any>({
  id: 'watcher',
  predictableActionArguments: true,
  context: { count: 0 },
  invoke: { id: 'clock', src: clock },
  initial: 'on',
  states: { on: {} },
  on: {
    ADD: {
      actions: [
        assign({ count: (context) => context.count + 1 }),
        sendParent((context: any) => ({ type: 'COUNTED', count: context.count })),
      ],
    },
    TICK: { actions: sendParent('TICKED') },
  },
});

export default createMachine<any, any>({
  id: 'family',
  predictableActionArguments: true,
  context: { name: 'made', rest: 1000, seen: [] },
  initial: 'idle',
  on: { PONG: { actions: assign({ seen: (context) => [...context.seen, 'pong'] }) } },
  states: {
    idle: { on: { PROVISION: 'making', AGAIN: 'making' } },
    making: {
      invoke: {
        id: 'worker',
        src: disk,
        data: { name: (context: any) => context.name, rest: (context: any) => context.rest },
        onDone: { target: 'watching', actions: assign({ made: (_, event: any) => event.data.resource }) },
        onError: { target: 'broken', actions: assign({ why: (_, event: any) => event.data.message }) },
      },
      on: {
        GIVE_UP: 'idle',
        FAIL: { actions: sendTo('worker', { type: 'FAIL' }) },
        PING: { actions: sendTo('worker', { type: 'PING' }) },
      },
    },
    watching: {
      entry: assign({ watcher: () => spawn(watcher.withContext({ count: 0 }), 'watcher') }),
      on: {
        ADD: { actions: sendTo((context: any) => context.watcher, { type: 'ADD' }) },
        LATER: { actions: sendTo('watcher', { type: 'ADD' }, { id: 'later', delay: 5000 }) },
        COUNTED: { actions: assign({ seen: (context, event: any) => [...context.seen, `counted ${event.count}`] }) },
        TICKED: { actions: assign({ seen: (context) => [...context.seen, 'ticked'] }) },
        STOP: { actions: stop('watcher') },
        END: 'done',
      },
    },
    broken: { on: { RETRY: 'making' } },
    done: { type: 'final', data: { made: (context: any) => context.made, seen: (context: any) => context.seen } },
  },
});
