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

  // Every XState machine, as it is made: the article's entry point does not export its own.
  const machinesMade = [];
  defineProperty(Object.prototype, '__xstatenode', {
    configurable: true,
    set(value) {
      defineProperty(this, '__xstatenode', {value, writable: true, enumerable: true, configurable: true});
      machinesMade.push(this);
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

  // --- The majors ------------------------------------------------------------------------------
  const shared = {
    activeNodes, checkState, defineProperty, drawing, enteredMark, everyNode, invalid, isObject, keys, log,
    metaActions, nameOfGuard, parse, stringify, without,
  };
  const {Machine4, isMachine4} = xstate4(shared);
  const {Machine5, isMachine5} = xstate5(shared);

  // --- An entry point of the bundle's own ------------------------------------------------------
  // The article's: handle_event(state, event) -> result, all as JSON.
  class EntryPoint {
    constructor(exported, inner) {
      this.handle = exported.handle_event;
      this.initial = exported.initial_state;
      this.inner = inner;  // The XState machine behind it, if there is one.
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
      this.inner.last = null;
      const result = this.ask(this.inner.restorableText(state, stateText), eventText);
      if (typeof result.error === 'string') return this.inner.ignored(state, event) ?? result;
      if (result.newState === undefined) return result;
      return 'handled' in result ? result : this.inner.refine(result);
    }
    definition() {
      if (this.inner === null) throw new Fault('NotFound', 'the bundle has no XState machine that could be drawn');
      return this.inner.definition();
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
      delete Object.prototype.__xstatenode;
      if (failed !== undefined) throw failed;
      machine = findMachine(namespace);
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
  ];
  const run = (request, a, b) => answer(() => requests[request](a, b));

  return {loaded, run};
});
