// The published provisioner as a module of its own. Its own entry point cannot start a machine; this one can:
// the host calls it with the state `null` and an event that has the input.
import { workflowMachine } from '../../../../examples/database-provisioner/src/machine';
import { handle_event as published } from '../../../../examples/database-provisioner/src/index';

export function handle_event(state: string, event: string): string {
  if (state !== 'null' && state !== '') return published(state, event);
  const { input } = JSON.parse(event);
  const first = workflowMachine.withContext({ ...(workflowMachine.context as object), ...input } as any).initialState;
  return JSON.stringify({ newState: first.toJSON(), actions: [] });
}
