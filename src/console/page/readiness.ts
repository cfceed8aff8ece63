// Whether an object is ready, by the rules of its kind as hangar has them (src/airways/readiness.cc), and which objects it
// owns. Both follow tests/cases/readiness.json. Pure.

const groupOf = (object: any): string => (object.apiVersion?.includes("/") ? object.apiVersion.split("/")[0] : "");

// A condition that was observed at another generation says nothing of this one.
function meets(object: any, ...types: string[]): boolean {
  return types.every((type) => {
    const found = (object.status?.conditions ?? []).find((one: any) => one.type === type);
    return found?.status === "True" && (!found.observedGeneration || found.observedGeneration === object.metadata?.generation);
  });
}

function countersAgree(object: any, first: string, ...others: string[]): boolean {
  const status = object.status ?? {};
  return (status.observedGeneration ?? 0) === (object.metadata?.generation ?? 0) && others.every((one) => (status[one] ?? 0) === (status[first] ?? 0));
}

const isInstance = (object: any) =>
  (object.metadata?.ownerReferences ?? []).some((one: any) => one.apiVersion === "yoke.cd/v1alpha1" && one.kind === "Airway");

// Undefined: no rule that the page knows decides, so the object exists and that is all. Of a Service, hangar looks for
// endpoint slices, and of other kinds at the cluster's own rules, neither of which the page reads.
export function isReady(object: any): boolean | undefined {
  if (object.metadata?.deletionTimestamp) return false;
  const kind = [object.kind, groupOf(object)].filter(Boolean).join(".");
  switch (kind) {
    case "Namespace":
      return object.status?.phase === "Active";
    case "Pod": {
      // It has ended as its Job wanted. hangar judges the Job, and no pod that another object owns.
      const isOfAJob = (object.metadata?.ownerReferences ?? []).some((one: any) => one.kind === "Job");
      return isOfAJob && object.status?.phase === "Succeeded" ? undefined : meets(object, "Initialized", "ContainersReady", "Ready");
    }
    case "Deployment.apps":
      return countersAgree(object, "replicas", "availableReplicas", "readyReplicas", "updatedReplicas") && meets(object, "Available");
    case "ReplicaSet.apps":
      return countersAgree(object, "replicas", "availableReplicas", "readyReplicas");
    case "StatefulSet.apps":
      return countersAgree(object, "replicas", "availableReplicas", "readyReplicas", "updatedReplicas");
    case "DaemonSet.apps":
      return countersAgree(object, "desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled", "numberAvailable", "numberReady");
    case "Job.batch":
      return meets(object, "Complete") && !meets(object, "Failed");
    case "CustomResourceDefinition.apiextensions.k8s.io":
      return meets(object, "Established");
    case "Airway.yoke.cd":
    case "Flight.yoke.cd":
    case "ClusterFlight.yoke.cd":
      return meets(object, "Ready");
    default:
      return isInstance(object) ? meets(object, "Ready") : undefined;
  }
}

export const childrenOf = (owner: any, all: any[]): any[] =>
  all.filter((one) => (one.metadata?.ownerReferences ?? []).some((reference: any) => reference.uid === owner.metadata?.uid));
