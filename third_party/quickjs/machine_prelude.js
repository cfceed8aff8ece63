// What a bundle finds when it is evaluated, and what turns a bundle into a machine: finding the
// machine in it, and what stepping machines of XState 4 and 5 has in common.
//
// The whole is an expression: a function of what the runtime gives and of what the files for the two majors are, which
// returns what the runtime calls.
(function (print, random, xstate4, xstate5) {
  'use strict';
  // The bundle may replace any of these; its affair, but not ours.
  const {parse, stringify} = JSON;
  const {keys, assign, defineProperty, getOwnPropertyNames} = Object;
  const isArray = Array.isArray;

  // --- What a bundle finds ---------------------------------------------------------------------
  const shown = (value) => {
    if (typeof value === 'string') return value;
    if (value instanceof Error) return describe(value);
    try {
      return stringify(value) ?? String(value);
    } catch {
      return String(value);
    }
  };
  let isQuiet = true;  // What is printed before the first step is nobody's.
  const log = (...values) => {
    if (!isQuiet) print(values.map(shown).join(' ') + '\n');
  };
  globalThis.console = {log, info: log, warn: log, error: log, debug: log, trace: log, group: log, groupEnd() {}};
  globalThis.process = {env: {NODE_ENV: 'production'}};
  globalThis.module = {exports: {}};
  globalThis.exports = globalThis.module.exports;
  Math.random = random;
  const globalsBefore = new Set(getOwnPropertyNames(globalThis));

  // Every XState machine, as it is made: the article's entry point does not export its own. Both majors set `idMap` of one
  // that is marked already; whether something has the mark itself, version 4 asks of all that it is given.
  const machinesMade = [];
  defineProperty(Object.prototype, 'idMap', {
    configurable: true,
    set(value) {
      defineProperty(this, 'idMap', {value, writable: true, enumerable: true, configurable: true});
      if (this.__xstatenode === true) machinesMade.push(this);
    },
  });

  // --- Errors ----------------------------------------------------------------------------------
  class Fault extends Error {
    constructor(kind, message) {
      super(message);
      this.kind = kind;
    }
  }
  const invalid = (message) => new Fault('InvalidInput', message);

  function describe(thrown) {
    if (!(thrown instanceof Error)) return `threw ${typeof thrown === 'string' ? thrown : shown(thrown)}`;
    const where = /\(?(\w+:\d+(?::\d+)?)\)?/.exec(thrown.stack ?? '');
    return `${thrown.name}: ${thrown.message}${where ? ` (at ${where[1]})` : ''}`;
  }

  function faultOf(thrown) {
    const message = describe(thrown);
    if (thrown instanceof Fault) return {kind: thrown.kind, message: thrown.message};
    if (thrown instanceof Error && thrown.message === 'out of memory') return {kind: 'LimitExceeded', message: 'out of memory'};
    if (machine === null && /^could not load module/.test(thrown?.message)) {
      return {kind: 'InvalidInput', message: `${message}: everything has to be in the bundle (esbuild --bundle)`};
    }
    return {kind: thrown instanceof SyntaxError && machine === null ? 'InvalidInput' : 'GuestFault', message};
  }

  // A document for the host, or the fault that `work` ended with.
  function answer(work) {
    try {
      return stringify(work());
    } catch (thrown) {
      return stringify({fault: faultOf(thrown)});
    }
  }

  // --- What both majors share ------------------------------------------------------------------
  let machine = null;  // One of those below.

  const isObject = (value) => typeof value === 'object' && value !== null && !isArray(value);
  const enteredMark = 'hangar.enter';

  // An action as the host takes it, or nothing.
  const plainAction = (action) =>
    typeof action === 'string' ? {type: action} : {type: action?.type, params: action?.params ?? undefined};

  function metaActions(node, argument, event) {
    let actions = node.meta?.actions;
    if (typeof actions === 'function') actions = actions.call(node.meta, argument, event);
    if (actions === undefined || actions === null) return [];
    return (isArray(actions) ? actions : [actions]).map(plainAction);
  }

  // The nodes of a state value from the root down. InvalidInput when there is no such state.
  function activeNodes(root, value) {
    const nodes = [root];
    const walk = (node, below) => {
      if (typeof below === 'string') {
        const child = node.states?.[below];
        if (!child) throw unknownState(root, [...node.path, below]);
        nodes.push(child);
      } else if (isObject(below)) {
        for (const key of keys(below)) {
          const child = node.states?.[key];
          if (!child) throw unknownState(root, [...node.path, key]);
          nodes.push(child);
          walk(child, below[key]);
        }
      } else if (below !== undefined) {
        throw invalid('the state has a value that is neither a text nor an object');
      }
    };
    walk(root, value);
    return nodes;
  }
  const unknownState = (root, path) =>
    invalid(`the machine ${root.id} has no state ${path.join('.')}; it has ${keys(root.states ?? {}).join(', ') || 'none'}`);

  const everyNode = (node) => [node, ...keys(node.states ?? {}).flatMap((key) => everyNode(node.states[key]))];

  function checkState(state) {
    if (!isObject(state) || state.value === undefined) throw invalid('the state is not one of an XState machine: it has no value');
  }

  // For drawing. Targets are full ids ("#machine.state"), as XState writes them.
  function drawing(node, transitionsOf) {
    const drawn = {id: node.id, type: node.type};
    if (node.description) drawn.description = node.description;
    const initial = typeof node.initial === 'string' ? node.initial : node.initial?.target?.[0]?.key;
    if (initial !== undefined) drawn.initial = initial;
    if (node.history) drawn.history = node.history;
    if (isArray(node.meta?.actions)) drawn.meta = {actions: node.meta.actions.map(plainAction)};
    if (node.invoke?.length > 0) drawn.invoke = node.invoke.map(({id, src}) => ({id, src: src?.type ?? src}));
    for (const {event, targets, guard, delay} of transitionsOf(node)) {
      const transition = {target: targets.map((target) => '#' + target.id)};
      if (guard) transition.guard = guard;
      if (delay !== undefined) {
        ((drawn.after ??= {})[delay] ??= []).push({...transition, event});
      } else if (event === '') {
        (drawn.always ??= []).push(transition);
      } else {
        ((drawn.on ??= {})[event] ??= []).push(transition);
      }
    }
    if (keys(node.states ?? {}).length > 0) {
      drawn.states = {};
      for (const key of keys(node.states)) drawn.states[key] = drawing(node.states[key], transitionsOf);
    }
    return drawn;
  }
  function nameOfGuard(guard) {
    if (!guard) return undefined;
    if (typeof guard === 'string') return guard;
    return (guard.type === 'xstate.guard' ? undefined : guard.type) || guard.name || 'guard';
  }

  // Removes from `actions` one of each that is equal to one of `others`.
  function without(actions, others) {
    const unwanted = others.map((action) => stringify([action.type, action.params ?? {}]));
    return actions.filter((action) => {
      const at = unwanted.indexOf(stringify([action?.type, action?.params ?? {}]));
      if (at >= 0) unwanted.splice(at, 1);
      return at < 0;
    });
  }

  // --- Actors ----------------------------------------------------------------------------------
  // What a machine invokes or spawns. The states of its actors are in its own, below `children`, each with the number
  // of its session: an id may be used again, a session never is. All that actors tell each other happens in the step
  // in which it is said; what they ask of the host has the address of who asks: its path, and its session.
  const depthMax = 8;
  const messagesMax = 10000;  // From actor to actor, in one step.
  const addressOf = 'hangar.actor';  // The member of an event that says whom it is for, if not the machine itself.
  const refMark = 'xstate$$type';  // What XState 5 writes in place of an actor.
  const knownPrefix = 'hangar.machine:';  // The source of an actor whose machine was spawned without a name.
  const known = [];  // The machines of the bundle that are no part of another.

  const label = (id) => String(id).replace(/[^\w.()-]/g, '_').slice(0, 64);
  const sessionIn = (address) => Number(/#(\d+)$/.exec(address)?.[1]);
  // XState makes an id of the state for what has none.
  const isMadeUp = (id) => /^\d+\.|:invocation\[\d+\]$/.test(id);
  const nameOfInvoke = (id, src) =>
    src === undefined || src === id ? (isMadeUp(id) ? 'an actor' : id) : isMadeUp(id) ? src : `${src} as ${id}`;
  const insteadOfIt =
    'ask the host for an action on entering the state instead (entry or meta.actions), and go on with the event that it ends in';

  // What one step does that is not in the machine's own state.
  class Effects {
    constructor(sessions) {
      this.sessions = sessions;  // The number of the next one. The machine itself is 0.
      this.actions = [];
      this.started = [];
      this.cancelled = [];
      this.messages = 0;
      this.failure = null;  // What no actor may catch: what the machine itself threw, and what is refused.
    }
    newSession() {
      return this.sessions++;
    }
    ask(actor, actions) {
      for (const action of actions) this.actions.push(actor === undefined ? action : {...action, actor});
    }
    start(timer) {
      if (timer.replaces) this.started = this.started.filter(({id}) => id !== timer.id);
      this.started.push(timer);
    }
    cancel(id) {
      this.started = this.started.filter((timer) => timer.id !== id);
      this.cancelled.push(id);
    }
    fail(thrown) {
      this.failure ??= {thrown};
      throw this.failure.thrown;
    }
    countMessage() {
      if (this.failure !== null) throw this.failure.thrown;
      if (++this.messages > messagesMax) {
        this.fail(new Fault('LimitExceeded', `actors sent more than ${messagesMax} events to each other in one step`));
      }
    }
    // For the answer. `isLive` tells of the address of an actor.
    document(isLive, ended, actors) {
      const started = this.started.filter(({source}) => isLive(source)).map(({source, ...timer}) => timer);
      return {
        ...(started.length > 0 && {timersStarted: started}),
        ...(this.cancelled.length > 0 && {timersCancelled: this.cancelled}),
        ...(actors.length > 0 && {actors}),
        ...(ended.length > 0 && {actorsStopped: ended}),
      };
    }
  }

  // Calls `found` with (container, key) of each actor's document below `value`.
  function eachRef(value, found) {
    if (typeof value !== 'object' || value === null) return;
    for (const key of keys(value)) {
      const one = value[key];
      if (isObject(one) && one[refMark] === 1) found(value, key, one);
      else eachRef(one, found);
    }
  }

  // An actor that somebody still names and that is no more.
  function goneActor(id, session) {
    const gone = {id, sessionId: `x:${session}`, send() {}, _send() {}, subscribe: () => ({unsubscribe() {}})};
    gone.getSnapshot = () => ({status: 'stopped'});
    gone.toJSON = () => ({[refMark]: 1, id, session});
    gone.ref = gone;
    return gone;
  }

  function checkChildren(children) {
    const isActor = (child) => isObject(child) && isObject(child.snapshot) && typeof child.src === 'string';
    if (children !== undefined && !(isObject(children) && keys(children).every((id) => isActor(children[id])))) {
      throw invalid('the state has children that are not actors with a state, a source and a session each');
    }
  }
  // An actor that comes into being: how deep, and as whom.
  function checkActor({address, session, depth}, actors) {
    if (depth > depthMax) throw new Fault('LimitExceeded', `the actor ${address} is more than ${depthMax} machines deep`);
    if (typeof session !== 'number' || actors.has(session)) throw invalid(`the state has the actor ${address}, whose session is missing or that of another`);
  }

  // Of an action: its failure has to be known to somebody.
  const isFailure = ({actionId, reason}) => actionId !== undefined && reason !== undefined;
  // Of the actors above one that is gone, the lowest; the machine itself at last.
  function nearest(address, actors) {
    for (let path = address; path !== ''; ) {
      path = path.slice(0, Math.max(0, path.lastIndexOf('/')));
      const found = actors.find((actor) => actor.path === path);
      if (found !== undefined) return found;
    }
  }

  const behindAnEntryPoint = (machine) =>
    invalid(`the machine ${machine.id} has child machines, which run when the host steps it: export the machine as default, and no handle_event of another kind than the published one`);

  function nameOfKnown(machine, address) {
    if (known.filter(({id}) => id === machine.id).length === 1) return knownPrefix + machine.id;
    throw invalid(`the actor ${address} runs one of several machines called ${machine.id}: give each an id of its own`);
  }
  const knownByName = (name) => known.filter(({id}) => knownPrefix + id === name);

  // --- The majors ------------------------------------------------------------------------------
  const shared = {
    Effects, Fault, activeNodes, addressOf, assign, behindAnEntryPoint, checkActor, checkChildren, checkState,
    defineProperty, drawing, eachRef, enteredMark, everyNode, goneActor, insteadOfIt, invalid, isArray, isFailure,
    isObject, keys, known, knownByName, knownPrefix, label, log, metaActions, nameOfGuard, nameOfInvoke, nameOfKnown,
    nearest, parse, refMark, sessionIn, shown, stringify, without,
  };
  const {Machine4, isMachine4, isSameMachine4} = xstate4(shared);
  const {Machine5, isMachine5} = xstate5(shared);

  // --- An entry point of the bundle's own ------------------------------------------------------
  // The article's: handle_event(state, event) -> result, all as JSON.
  class EntryPoint {
    constructor(exported, inner) {
      this.handle = exported.handle_event;
      this.initial = exported.initial_state;
      this.inner = inner;  // The XState machine behind it, if there is one.
    }
    check() {
      this.inner?.check();
      this.inner?.checkEntryPoint({hasInitialState: typeof this.initial === 'function'});
    }
    warm() {
      this.inner?.warm();
    }
    ask(state, event) {
      const text = this.handle(state, event);
      if (typeof text !== 'string') throw invalid(`handle_event returned ${text === null ? 'null' : typeof text}, not a JSON text`);
      return this.read(text);
    }
    read(text) {
      let result;
      try {
        result = parse(text);
      } catch {
        throw invalid('handle_event returned a text that is not JSON');
      }
      if (!isObject(result)) throw invalid('handle_event returned JSON that is no object');
      return result;
    }
    start(input) {
      if (typeof this.initial === 'function') return this.read(this.initial(stringify(input ?? {})));
      if (this.inner !== null) return this.inner.start(input);
      return this.ask('null', stringify({type: 'xstate.init', input: input ?? {}}));
    }
    step(state, event, stateText, eventText) {
      if (this.inner === null) return this.ask(stateText, eventText);
      if (addressOf in event) return this.inner.step(state, event);
      this.inner.last = null;
      const result = this.ask(this.inner.restorableText(state, stateText), eventText);
      if (typeof result.error === 'string') return this.inner.ignored(state, event) ?? result;
      if (result.newState === undefined) return result;
      return this.inner.refine(result, state, event);
    }
    definition() {
      if (this.inner === null) throw new Fault('NotFound', 'the bundle has no XState machine that could be drawn');
      return this.inner.definition();
    }
    actors(state) {
      return this.inner?.actors(state) ?? [];
    }
  }

  // --- Finding the machine ---------------------------------------------------------------------
  const isMachine = (value) => isMachine4(value) || isMachine5(value);

  function chosenMachine(exported) {
    for (const name of ['default', 'machine', 'workflowMachine']) {
      if (isMachine(exported[name])) return exported[name];
    }
    const others = [...new Set(keys(exported).map((key) => exported[key]).filter(isMachine))];
    if (others.length === 1) return others[0];
    const roots = others.length > 0 ? others : machinesMade.filter((made) => isMachine(made) && !made.parent);
    // A machine that is part of another is made before it.
    return others.length > 0 ? null : roots.at(-1) ?? null;
  }

  function wrapped(found) {
    return isMachine4(found) ? new Machine4(found) : new Machine5(found);
  }

  function findMachine(namespace) {
    const {exports} = globalThis.module;
    const exported = assign(Object.create(null), exports, namespace);
    for (const name of getOwnPropertyNames(globalThis)) {
      if (globalsBefore.has(name)) continue;
      const value = globalThis[name];
      if (isMachine(value) || name === 'handle_event' || name === 'initial_state') exported[name] ??= value;
      // What a bundler makes of an iife with a name.
      else if (isObject(value)) for (const key of keys(value)) exported[key] ??= value[key];
    }
    exported.handle_event ??= exported.handleEvent;
    const found = chosenMachine(exported);
    if (typeof exported.handle_event === 'function') return new EntryPoint(exported, found && wrapped(found));
    if (found) return wrapped(found);
    const several = keys(exported).filter((key) => isMachine(exported[key]));
    if (several.length > 0) throw invalid(`the bundle exports the machines ${several.join(', ')}: export the one to run as default`);
    throw invalid('the bundle has no machine: export an XState machine as default, or a function handle_event(state, event)');
  }

  // --- What the runtime calls ------------------------------------------------------------------
  function loaded(namespace, failed) {
    return answer(() => {
      delete Object.prototype.idMap;
      if (failed !== undefined) throw failed;
      machine = findMachine(namespace);
      for (const made of machinesMade) {
        if (isMachine(made) && !made.parent && !known.some((one) => isMachine4(one) && isSameMachine4(one, made))) known.push(made);
      }
      machine.check();
      try {
        machine.warm();
      } catch {
        // Some machines cannot begin without input. Their first step says so.
      }
      isQuiet = false;
      return {};
    });
  }

  function parsed(text, what) {
    try {
      return parse(text);
    } catch {
      throw invalid(`${what} is not JSON`);
    }
  }
  const parsedEvent = (text) => {
    const event = parsed(text, 'the event');
    if (!isObject(event) || typeof event.type !== 'string') throw invalid('the event is not an object with a type');
    return event;
  };
  const requests = [
    (input) => machine.start(parsed(input, 'the input')),
    (state, event) => machine.step(parsed(state, 'the state'), parsedEvent(event), state, event),
    () => machine.definition(),
    (state) => ({actors: machine.actors(parsed(state, 'the state'))}),
  ];
  const run = (request, a, b) => answer(() => requests[request](a, b));

  return {loaded, run};
});
