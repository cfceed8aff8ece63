// The machines of family_v4.ts behind the entry point as it was published.
import { State } from 'xstate';

import workflowMachine from './family_v4';

export function handle_event(currentStateJson: string, eventJson: string): string {
  try {
    const event = JSON.parse(eventJson);
    const previousState = State.create(JSON.parse(currentStateJson)) as any;
    const newState = workflowMachine.transition(previousState, event);
    const actions: any[] = [];
    for (const stateNode of newState.configuration) {
      if (stateNode.meta?.actions) {
        const resolved = typeof stateNode.meta.actions === 'function' ? stateNode.meta.actions(newState.context) : stateNode.meta.actions;
        actions.push(...resolved);
      }
    }
    return JSON.stringify({ newState: newState.toJSON(), actions });
  } catch (e: any) {
    return JSON.stringify({ error: e.toString() });
  }
}
