// XState 5: a machine that returns to its earlier state.
import { createMachine } from 'xstate';

export const machine = createMachine({
  id: 'story',
  initial: 'book',
  states: {
    book: {
      initial: 'one',
      on: { CLOSE: 'closed' },
      states: {
        one: { on: { TURN: 'two' } },
        two: { meta: { actions: [{ type: 'READ_TWO' }] } },
        bookmark: { type: 'history' },
      },
    },
    closed: { on: { OPEN: 'book.bookmark' } },
  },
});
