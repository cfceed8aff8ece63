// src/index.ts
import { workflowMachine } from './machine';
import { State } from 'xstate';

// This is the exported function our Go operator will call.
// It must be named `handle_event` for the C ABI binding.
export function handle_event(currentStateJson: string, eventJson: string): string {
  try {
    const event = JSON.parse(eventJson);

    // Re-hydrate the state machine from the persisted JSON state.
    const previousState = State.create(JSON.parse(currentStateJson));

    const service = {
      send: (event) => {
        // In a real implementation, you'd use an interpreter here.
        // For simplicity, we manually transition.
        return workflowMachine.transition(previousState, event);
      }
    };

    const newState = service.send(event);

    // Find the actions to be executed for the new state.
    let actions: any[] = [];
    for (const stateId of newState.configuration) {
      if (stateId.meta?.actions) {
        const resolvedActions = typeof stateId.meta.actions === 'function'
          ? stateId.meta.actions(newState.context)
          : stateId.meta.actions;
        actions.push(...resolvedActions);
      }
    }

    const result = {
      newState: newState.toJSON(),
      actions: actions,
    };

    return JSON.stringify(result);
  } catch (e: any) {
    // Propagate errors back to the Go host.
    const errorResult = {
      error: e.toString()
    };
    return JSON.stringify(errorResult);
  }
}
