// Answers of a console with 10,000 operators and with names that are attacks, for the page alone: a control plane of tests
// has neither. The forms are those of the API server and of seeing/messages.cc.

export const COUNT = 10_000;
// Markup, a terminal's sequence, marks that turn the direction, and letters that run from right to left: 4 KiB.
export const HOSTILE = ('<script>window.owned = 1</script><img src=x onerror="window.owned = 1">\u001b[31m\u202e' + "\u05d0\u05d1\u05d2 ".repeat(1000)).slice(0, 4096);

const now = Date.now();
const at = (seconds) => new Date(now + seconds * 1000).toISOString();
const object = (kind, name, group = "") => ({ kind, name, namespace: "team-0", ...(group ? { group } : {}) });
const condition = (type, status, reason = "", message = "") => ({ type, status, reason, message });

const operators = Array.from({ length: COUNT }, (_, index) => {
  const isFailing = index % 397 === 5;
  const isAwake = index % 8 === 6 && !isFailing;
  return {
    metadata: { namespace: `team-${Math.floor(index / 100)}`, name: index === 5 ? "failing" : `operator-${index % 100}`, uid: `o${index}` },
    status: {
      phase: isFailing ? "BackOff" : index % 991 === 3 ? "Pending" : isAwake ? "Running" : "Asleep",
      residentBytes: isAwake ? 4e6 * (1 + (index % 5)) : 0, onDiskBytes: isAwake ? 0 : 9e5, wakes: (index * 7) % 1000, restarts: isFailing ? 9 : 0,
      lastWake: { time: at(-30) }, module: { sha256: "ab12cd34ef567890", resolved: HOSTILE },
      lastError: isFailing ? HOSTILE : undefined, conditions: [condition("Ready", isFailing ? "False" : "True", isFailing ? "Trapped" : "Ready", isFailing ? HOSTILE : "")],
    },
  };
});

const guests = operators.map((one, index) => {
  const isAwake = one.status.phase === "Running";
  return {
    contract: "operator", namespace: one.metadata.namespace, name: one.metadata.name, phase: one.status.phase, cpuMicroseconds: isAwake ? Math.round(10 ** (1 + (index % 60) / 10)) : 0,
    turns: isAwake ? index % 13 : 0, failures: 0, requests: isAwake ? index % 29 : 0, writtenBytes: (index % 11) * 100, memoryBytes: one.status.residentBytes,
    diskBytes: one.status.onDiskBytes, restarts: one.status.restarts,
  };
});

const turns = Array.from({ length: 60 }, (_, index) => ({
  contract: "operator", namespace: "team-0", name: "failing", module: "ab12cd34ef567890", host: "00ff", instance: 1, turn: index + 1, arrived: at(-600 + index * 9),
  waitedMicroseconds: index % 7 === 0 ? 900 : 20, ranMicroseconds: 1500 + 4000 * Math.abs(Math.sin(index)), resumeMicroseconds: index % 3 ? 0 : 700,
  cpuMicroseconds: 900 + 1500 * Math.abs(Math.sin(index)), wasAsleep: index % 3 === 0, memoryBytes: 2e6 + index * 3e4, outcome: index % 17 === 16 ? "failed" : "waits",
  causes: [{ cause: "modified", id: 1, object: object("ConfigMap", HOSTILE) }, { cause: "answer", id: 3, bytes: 900 }],
  requests: [
    { id: 1, verb: index === 0 ? "watch" : "get", resource: "configmaps", object: object("ConfigMap", "settings"), at: at(-600 + index * 9), bytes: 0, tookMicroseconds: 800, status: 200 },
    { id: 2, verb: "apply", resource: "deployments", object: object("Deployment", "web", "apps"), at: at(-600 + index * 9), bytes: 900, tookMicroseconds: 3000, status: index % 5 ? 200 : 409,
      bodyState: "whole", body: JSON.stringify({ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "web", annotations: { note: HOSTILE } }, spec: { replicas: 2 } }) },
    { id: 3, verb: "update", resource: "configmaps", object: object("ConfigMap", "copy"), at: at(-600 + index * 9), bytes: 200, tookMicroseconds: 2000, status: 200, bodyState: "withheld" },
  ],
  suspendMicroseconds: 500, diskBytes: 800000,
}));

// More rows than the page shows.
const costOf = (scale) => ({
  cpuMicroseconds: Math.round(4e6 * scale), memoryByteSeconds: Math.round(8e10 * scale), cacheByteSeconds: Math.round(2e9 * scale), diskByteSeconds: Math.round(6e9 * scale),
  turns: Math.round(3000 * scale), requests: Math.round(9000 * scale), readBytes: Math.round(5e6 * scale), writtenBytes: Math.round(7e5 * scale),
});
const costs = [
  { namespace: "(host)", ...costOf(9) }, { namespace: "team-0", ...costOf(0.2) },
  ...Array.from({ length: 300 }, (_, index) => ({ namespace: `team-${Math.floor(index / 3)}`, module: `${index}`.padEnd(64, "ab12cd34"), ...costOf(5 / (1 + index)) })),
  { namespace: HOSTILE, module: HOSTILE, ...costOf(3) },
];

const VOLUME = '{"provisioning":"volume"}';
const workflow = {
  metadata: { namespace: "team-0", name: "orders", uid: "w1" },
  status: {
    value: VOLUME, revision: { sha256: "feedbeef0123456789" }, transitions: 4, startedAt: at(-4000), enteredAt: at(-60),
    conditions: [condition("Ready", "False", "Progressing", "waits for the claim to be bound"), condition("Stalled", "False")],
    timers: [{ id: "t1", due: at(95), event: { type: "xstate.after(120000)#orders.provisioning" } }],
    outbox: [{ id: 4, type: "APPLY_RESOURCE", requestedAt: at(-50), deadline: at(200), attempts: 2, lastError: HOSTILE }],
    history: [
      { sequence: 1, time: at(-4000), event: "xstate.init", from: "", to: "idle", actions: [] }, { sequence: 2, time: at(-300), event: "CREATE", from: "idle", to: VOLUME, actions: ["APPLY_RESOURCE"] },
      { sequence: 3, time: at(-200), event: "FAILED", from: VOLUME, to: "failed", actions: [] }, { sequence: 4, time: at(-60), event: "RETRY", from: "failed", to: VOLUME, actions: ["APPLY_RESOURCE"] },
    ],
  },
};
const to = (...targets) => targets.map((target) => ({ target: [`#orders.${target}`] }));
const state = (id, rest = {}) => ({ id: `orders.${id}`, ...rest });
const machine = {
  value: { provisioning: "volume" }, actors: [],
  definition: {
    id: "orders", initial: "idle",
    states: {
      idle: state("idle", { on: { CREATE: to("provisioning"), CANCEL: to("cancelled") } }),
      provisioning: state("provisioning", {
        initial: "volume", on: { FAILED: to("failed"), CANCEL: to("cancelled") }, after: { 120000: to("failed") },
        states: { volume: state("provisioning.volume", { on: { BOUND: to("provisioning.database") } }), database: state("provisioning.database", { on: { READY: to("ready") } }) },
      }),
      failed: state("failed", { on: { RETRY: to("provisioning"), [HOSTILE]: to("cancelled") } }),
      ready: state("ready", { on: { DELETE: to("deleting"), CHECK: to("ready") } }), deleting: state("deleting", { on: { GONE: to("done") } }),
      done: state("done", { type: "final" }), cancelled: state("cancelled", { type: "final" }),
    },
  },
};

const usages = Array.from({ length: 5 }, (_, index) => ({
  metadata: { namespace: `team-${index}`, name: "usage" },
  status: {
    policies: index ? ["small"] : [], guestMemory: { used: 3e7 * (index + 1), limit: 2e8 }, guestDisk: { used: 3e6, limit: 1e9 }, moduleDisk: { used: 9e6, limit: 2.5e9 }, cpu: { used: 40 * index, limit: index ? 200 : undefined },
    operators: { used: 100, awake: 12 + index, limit: index ? 200 : undefined }, workflows: { used: index }, flights: { used: 1 }, instances: { used: 3 },
  },
}));

const difference = `--- the flight's output
+++ the cluster
@@ -6,9 +6,9 @@
   namespace: team-0
 spec:
-  replicas: 2
+  replicas: 5
   template:
     spec:
       containers:
         - name: shop
-          image: registry.example.com/shop@sha256:${"ab12cd34".repeat(8)}
+          image: ${HOSTILE}
`;
const drift = {
  release: "examples.com.Backend.team-0.shop", namespace: "team-0", revision: 3, interrupted: 1, leftOut: 2,
  resources: [
    { resource: "team-0/Deployment.apps:shop", drift: "differs", difference, isCut: true }, { resource: "team-0/Service:shop", drift: "none" }, { resource: `team-0/ConfigMap:${HOSTILE}`, drift: "missing" },
    { resource: "team-0/Role.rbac.authorization.k8s.io:shop", drift: "unknown", error: HOSTILE },
  ],
};
const unprinted = { release: "team-1/Flight.yoke.cd:ingress", namespace: "team-1", revision: 1, interrupted: 0, leftOut: 0, resources: [{ resource: "team-1/Deployment.apps:web", drift: "none" }] };

const ownedBy = (uid) => ({ ownerReferences: [{ uid }] });
const installer = "registry.example.com/hangar-node:v1";
const CLUSTER = "/api/cluster";
const answers = {
  "/api/state": { version: "0.1.0", server: "https://127.0.0.1:6443", context: "kind-dev", namespace: "team-0", allowsActions: true, idleSeconds: 1800 },
  "/api/top": { at: at(0), microseconds: 6e7, guests, records: { problems: [] } },
  "/api/cost": { at: at(0), microseconds: 4.32e9, rows: costs, processes: costOf(40), problems: [HOSTILE] },
  "/api/turns": { turns, records: {} },
  "/api/uses": {
    uses: [{ verb: "watch", resource: "configmaps", namespace: HOSTILE, isOpen: true }, { verb: "watch", group: "apps", resource: "deployments", isOpen: true }, { verb: "list", resource: "secrets" }],
    sharers: [{ namespace: "team-0", name: HOSTILE }], sharersWithheld: 2, records: {},
  },
  "/api/why": { text: `Deployment.apps team-0/web is at version 812, which was written from here.\n2026-11-26T20:00:01.123456Z  apply deployments.apps team-0/web: 200\n  <- turn 12 of operator team-0/failing at 2026-11-26T20:00:01.100000Z (module sha256:ab12cd34ef56)\n    <- modified ConfigMap team-0/settings\n      <- by kubectl (Update at 2026-11-26T20:00:00Z)\n${HOSTILE}\n` },
  "/api/logs": { text: `starting\nreconciled team-0/web\n${HOSTILE}\n` },
  "/api/machine": machine,
  "/api/signal": { id: "0001" },
  "/api/nodes": {
    rollout: { standing: "Rolling", message: "", version: installer, autoProvision: false, active: ["node-2"] },
    nodes: [
      { node: "node-1", phase: "Provisioned", version: installer, since: at(-400), lastError: "", action: "Install" }, { node: "node-2", phase: "Installing", version: installer, since: at(-20), lastError: "", action: "Install" },
      { node: "node-3", phase: "Failed", version: "", since: at(-90), lastError: HOSTILE, action: "Install" }, { node: "node-4", phase: "-", version: "", since: null, lastError: "", action: "Install" },
    ],
  },
  [`${CLUSTER}/apis/hangar.dev/v1alpha1/tenantusages`]: { items: usages },
  [`${CLUSTER}/apis/workflows.example.com/v1/statefulworkflows`]: { items: [workflow] },
  [`${CLUSTER}/apis/yoke.cd/v1alpha1/airways`]: { items: [{ metadata: { name: "backends.examples.com", uid: "a1" }, spec: { template: { group: "examples.com", names: { plural: "backends", kind: "Backend" }, versions: [{ name: "v1", storage: true }] } }, status: { conditions: [condition("Ready", "True", "Ready")] } }] },
  [`${CLUSTER}/apis/examples.com/v1/backends`]: { items: [{ metadata: { name: "shop", namespace: "team-0", uid: "i1", creationTimestamp: at(-9000) }, status: { conditions: [condition("Ready", "False", "InProgress", HOSTILE)] } }] },
  [`${CLUSTER}/apis/apps/v1/namespaces/team-0/deployments`]: { items: [{ metadata: { name: "shop", namespace: "team-0", uid: "d1", ...ownedBy("i1") }, spec: { replicas: 2 }, status: { readyReplicas: 1 } }] },
  [`${CLUSTER}/api/v1/namespaces/team-0/services`]: { items: [{ metadata: { name: "shop", namespace: "team-0", uid: "s1", ...ownedBy("i1") } }] },
  [`${CLUSTER}/apis/yoke.cd/v1alpha1/flights`]: { items: [{ metadata: { name: "ingress", namespace: "team-1", uid: "f1" }, status: { conditions: [condition("Ready", "True", "Ready")], inventory: [{ resource: "team-1/Deployment.apps:web", version: "v1", ready: true }, { resource: `team-1/Job.batch:${HOSTILE}`, version: "v1", ready: false }] } }] },
};

// The answer to a question; undefined: there is none.
export function answer(url) {
  const path = url.pathname;
  if (path === `${CLUSTER}/apis/hangar.dev/v1alpha1/operators`) {
    const first = Number(url.searchParams.get("continue") ?? 0);
    const rest = first + 500 < COUNT ? String(first + 500) : "";
    return { items: operators.slice(first, first + 500), metadata: { continue: rest } };
  }
  if (path === "/api/drift") return url.searchParams.get("instance") === "team-0/Backend.examples.com:shop" ? drift : unprinted;
  if (path.includes("/operators/")) return operators[5];
  if (path.includes("/statefulworkflows/")) return workflow;
  return answers[path] ?? (path.startsWith(CLUSTER) ? { items: [] } : undefined);
}
