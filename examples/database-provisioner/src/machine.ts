// src/machine.ts
import { createMachine, assign } from 'xstate';

// Define the context (the "memory") of our state machine.
interface WorkflowContext {
  pvcName?: string;
  deploymentName?: string;
  errorMessage?: string;
  retries: number;
}

// Define the events that can be sent to the machine.
type WorkflowEvent =
  | { type: 'PROVISION' }
  | { type: 'K8S_RESOURCE_CREATED'; resourceName: string }
  | { type: 'HEALTH_CHECK_PASSED' }
  | { type: 'FAILURE'; message: string };

// These are the abstract actions the Go operator needs to execute.
// The machine tells the operator *what* to do, not *how*.
type WorkflowAction =
  | { type: 'CREATE_PVC'; params: { size: string } }
  | { type: 'CREATE_DEPLOYMENT'; params: { imageName: string } }
  | { type: 'RUN_HEALTH_CHECK'; params: { deploymentName: string } }
  | { type: 'DELETE_RESOURCES' };

// The machine definition itself.
export const workflowMachine = createMachine<
  WorkflowContext,
  WorkflowEvent,
  { value: any; context: WorkflowContext },
  any,
  any,
  any,
  any,
  {
    actions: WorkflowAction[];
  }
>({
  id: 'database-provisioner',
  initial: 'idle',
  context: {
    retries: 0,
  },
  states: {
    idle: {
      on: { PROVISION: 'creatingPvc' },
    },
    creatingPvc: {
      meta: {
        // This 'actions' block is our contract with the Go host.
        // On entering this state, the operator should perform these actions.
        actions: [{ type: 'CREATE_PVC', params: { size: '1Gi' } }],
      },
      on: {
        K8S_RESOURCE_CREATED: {
          target: 'creatingDeployment',
          actions: assign({ pvcName: (_, event) => event.resourceName }),
        },
        FAILURE: 'failed',
      },
    },
    creatingDeployment: {
      meta: {
        actions: (context) => [
          {
            type: 'CREATE_DEPLOYMENT',
            params: { imageName: 'postgres:13' },
          },
        ],
      },
      on: {
        K8S_RESOURCE_CREATED: {
          target: 'healthChecking',
          actions: assign({ deploymentName: (_, event) => event.resourceName }),
        },
        FAILURE: 'failed',
      },
    },
    healthChecking: {
      meta: {
        actions: (context) => [
          {
            type: 'RUN_HEALTH_CHECK',
            params: { deploymentName: context.deploymentName! },
          },
        ],
      },
      on: {
        HEALTH_CHECK_PASSED: 'ready',
        FAILURE: {
          target: 'failed',
          actions: assign({
            errorMessage: (_, event) => event.message,
            retries: (context) => context.retries + 1
          })
        }
      },
    },
    ready: {
      type: 'final',
    },
    failed: {
      meta: {
        // In a real system, this might trigger cleanup actions.
        actions: [{type: 'DELETE_RESOURCES'}]
      },
      type: 'final'
    },
  },
});
