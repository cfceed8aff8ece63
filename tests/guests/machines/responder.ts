// A machine that answers: on ASK it applies ConfigMap `input.answer` with the question's number, and waits for the next
// question. Questions that arrive meanwhile are not lost: it has to answer the largest number.
import { assign, createMachine, enqueueActions } from 'xstate';

const asked = assign({ number: ({ context, event }: any) => Math.max(context.number, event.number) });

export const machine = createMachine({
  id: 'responder',
  context: ({ input }: any) => ({ answer: input.answer, number: 0, answered: 0 }),
  initial: 'waiting',
  states: {
    waiting: {
      always: { guard: ({ context }: any) => context.number > context.answered, target: 'answering' },
      on: { ASK: { actions: asked } },
    },
    answering: {
      entry: [
        assign({ answered: ({ context }: any) => context.number }),
        enqueueActions(({ context, enqueue }: any) => enqueue({
          type: 'APPLY',
          params: { manifest: {
            apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: context.answer }, data: { number: String(context.number) },
          } },
        })),
      ],
      on: {
        ASK: { actions: asked },
        K8S_RESOURCE_CREATED: 'waiting',
        FAILURE: { target: 'waiting', actions: assign({ answered: 0 }) },
      },
    },
  },
} as any);
