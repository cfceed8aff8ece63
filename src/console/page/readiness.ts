// Whether an object is ready, by the rules of its kind; and which objects it owns. Pure.

const condition = (object: any, type: string) => (object.status?.conditions ?? []).find((one: any) => one.type === type)?.status;

// Undefined: objects of this kind are not ready or not, they exist.
export function isReady(object: any): boolean | undefined {
  const status = object.status ?? {};
  const isObserved = status.observedGeneration === undefined || status.observedGeneration >= (object.metadata?.generation ?? 0);
  switch (object.kind) {
    case "Deployment":
    case "StatefulSet": {
      const wanted = object.spec?.replicas ?? 1;
      return isObserved && (status.readyReplicas ?? 0) >= wanted && (status.updatedReplicas ?? wanted) >= wanted;
    }
    case "DaemonSet":
      return isObserved && (status.numberReady ?? 0) >= (status.desiredNumberScheduled ?? 0);
    case "Job":
      return condition(object, "Complete") === "True";
    case "Pod":
      return status.phase === "Succeeded" || condition(object, "Ready") === "True";
    case "PersistentVolumeClaim":
      return status.phase === "Bound";
    default: {
      const ready = condition(object, "Ready");
      return ready === undefined ? undefined : ready === "True";
    }
  }
}

export const childrenOf = (owner: any, all: any[]): any[] =>
  all.filter((one) => (one.metadata?.ownerReferences ?? []).some((reference: any) => reference.uid === owner.metadata?.uid));
