// What a bundle finds when it is evaluated, and what turns a bundle into a machine: finding the
// machine in it, and stepping XState 4 and 5 machines without their interpreters.
//
// The whole is an expression: a function of what the runtime gives, which returns what it calls.
(function (print, random) {
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

  // --- XState 4 --------------------------------------------------------------------------------
  class Machine4 {
    constructor(root) {
      this.root = root;
      for (const node of everyNode(root)) node.onEntry.unshift({type: enteredMark, id: node.id});
      this.nodes = new Map(everyNode(root).map((node) => [node.id, node]));
      // What the article's entry point throws away: toJSON() drops transitions and configuration.
      this.last = null;
      const transition = root.transition;
      root.transition = (...args) => (this.last = withoutHistory(transition(...args)));
    }
    // What the machine works out once and keeps is in the image then, and not worked out in each step.
    warm() {
      for (const node of this.nodes.values()) for (const event of node.events) node.getCandidates(event);
      const state = this.root.initialState;
      this.State = state.constructor;
      this.root.transition(state, {type: 'hangar.warm'});
    }
    start(input) {
      if (input !== undefined && !isObject(input)) throw invalid('the input is not an object');
      const context = this.root.context;
      const own = isObject(context) || context === undefined ? {...context, ...input} : context;
      this.root._init();
      return this.taken(this.root.getInitialState(this.root.initialStateValue, own), true);
    }
    // `configuration` and `transitions` are not in JSON, and an event that nothing handles hands
    // on those of the state before.
    check(state) {
      checkState(state);
      activeNodes(this.root, state.value);
    }
    restorable(state) {
      this.check(state);
      const event = state._event ?? {name: 'xstate.init', data: state.event ?? {type: 'xstate.init'}, $$type: 'scxml', type: 'external'};
      return {...state, _event: event, configuration: [], transitions: []};
    }
    // The same as text, of `text`, which is the state's: what is missing is appended.
    restorableText(state, text) {
      const isPlain = isObject(state?._event) && !('configuration' in state) && !('transitions' in state) && text.endsWith('}');
      if (!isPlain) return stringify(this.restorable(state));
      this.check(state);
      return text.slice(0, -1) + ',"configuration":[],"transitions":[]}';
    }
    step(state, event) {
      const {create} = this.State ?? this.root.initialState.constructor;
      const before = create(this.restorable(state));
      if (state.done === true || !this.accepts(event)) return this.taken(before, false);
      const after = this.root.transition(before, event);
      return this.taken(after, after.transitions.length > 0 || after.changed === true, event);
    }
    accepts(event) {
      return !this.root.strict || this.root.events.includes(event.type);
    }
    taken(state, isHandled, event) {
      const actions = isHandled ? state.actions.flatMap((action) => this.asked(action, state, event)) : [];
      return this.document(state, isHandled, actions);
    }
    document(state, isHandled, actions) {
      return {newState: tidy(state.toJSON()), ...this.summary(state, isHandled, actions)};
    }
    summary(state, isHandled, actions) {
      return {
        handled: isHandled,
        actions,
        value: state.value,
        final: state.done === true,
        output: state.done ? this.output(state) : undefined,
      };
    }
    output(state) {
      for (const node of activeNodes(this.root, state.value)) {
        if (node.type !== 'final' || node.parent !== this.root || node.doneData === undefined) continue;
        const data = node.doneData;
        if (typeof data === 'function') return data(state.context, state.event);
        if (!isObject(data)) return data;
        const result = {};
        for (const key of keys(data)) {
          result[key] = typeof data[key] === 'function' ? data[key](state.context, state.event) : data[key];
        }
        return result;
      }
    }
    asked(action, state, event = state.event) {
      const {type, exec} = action;
      if (type === enteredMark) return metaActions(this.nodes.get(action.id), state.context, event);
      if (type.startsWith('xstate.')) {
        if (type === 'xstate.log') return log(...[action.label, action.value].filter((part) => part !== undefined)), [];
        const {exec: dropped, ...rest} = action;
        return [rest];
      }
      const isInline = typeof exec === 'function' && !(type in this.root.options.actions);
      if (isInline) return exec(state.context, event, {action, state, _event: state._event}), [];
      const {type: ignored, exec: dropped, params, ...others} = action;
      return [{type, params: params ?? others}];
    }
    // The actions of `result` that belong to what was entered, and what else the host needs.
    refine(result) {
      const state = this.last;
      if (state === null) return result;
      const isHandled = state.transitions.length > 0 || state.changed === true;
      const entered = new Set(state.actions.filter(({type}) => type === enteredMark).map(({id}) => id));
      const staying = activeNodes(this.root, state.value).filter((node) => !entered.has(node.id));
      const actions = isHandled
        ? [
            ...without(result.actions ?? [], staying.flatMap((node) => metaActions(node, state.context, state.event))),
            ...state.actions.filter(({type}) => type.startsWith('xstate.')).flatMap((action) => this.asked(action, state)),
          ]
        : [];
      return {newState: tidy(result.newState), ...this.summary(state, isHandled, actions)};
    }
    // Whether an error of the entry point is only XState's way of ignoring an event.
    ignored(state, event) {
      const document = this.step(state, event);
      return document.handled ? null : document;
    }
    definition() {
      return drawing(this.root, (node) =>
        node.transitions.map(({eventType, target, cond}) => {
          const after = node.after.find((delayed) => delayed.eventType === eventType);
          return {event: eventType, targets: target ?? [], guard: nameOfGuard(cond), delay: after?.delay};
        })
      );
    }
  }
  // The state before is in a State of version 4 for who asks for it, and would be half of its JSON.
  function withoutHistory(state) {
    return defineProperty(state, 'history', {value: state.history, writable: true, configurable: true, enumerable: false});
  }
  // A State of version 4 without what steps do not need.
  function tidy(state) {
    if (!isObject(state) || !('_event' in state)) return state;
    const {history, ...kept} = state;
    return {...kept, actions: []};
  }

  // --- XState 5 --------------------------------------------------------------------------------
  class Machine5 {
    constructor(machine) {
      this.machine = machine;
      this.root = machine.root;
      for (const node of machine.idMap.values()) node.entry.unshift({type: enteredMark, params: {id: node.id}});
      this.last = null;
      const transition = machine.transition;
      machine.transition = (snapshot, event, scope) => {
        const actions = [];
        const execute = scope.actionExecutor;
        scope.actionExecutor = (action) => {
          actions.push(action);
          execute?.(action);
        };
        const after = transition(snapshot, event, scope);
        this.last = {before: snapshot, after, actions, event};
        return after;
      };
    }
    warm() {
      for (const node of this.machine.idMap.values()) [node.invoke, node.on, node.after, node.initial, node.events];
      const scope = this.scope();
      const snapshot = this.machine.getInitialSnapshot(scope, {});
      if (snapshot.status !== 'active') return;
      const persisted = parse(stringify(this.machine.getPersistedSnapshot(snapshot)));
      this.machine.transition(this.machine.restoreSnapshot(persisted, scope), {type: 'hangar.warm'}, scope);
    }
    // An actor that is only asked who it is.
    scope() {
      let count = 0;
      const nothing = () => {};
      const system = {
        _bookId: () => `x:${count++}`,
        _register: (id) => id,
        _unregister: nothing,
        _set: nothing,
        _sendInspectionEvent: nothing,
        _relay: nothing,
        _clock: {setTimeout: nothing, clearTimeout: nothing},
        _logger: log,
        _snapshot: {_scheduledEvents: {}},
        get: nothing,
        getAll: () => ({}),
        inspect: () => ({unsubscribe: nothing}),
        getSnapshot: () => ({_scheduledEvents: {}}),
        start: nothing,
        scheduler: {schedule: nothing, cancel: nothing, cancelAll: nothing},
      };
      const {machine} = this;
      const self = {id: machine.id, sessionId: 'x:0', src: machine, logic: machine, system, options: {}, send: nothing};
      self.ref = self;
      self.getSnapshot = () => self._snapshot;
      return {self, system, id: machine.id, sessionId: 'x:0', logger: log, defer: nothing, stopChild: nothing, emit: nothing, actionExecutor: nothing};
    }
    start(input) {
      const scope = this.scope();
      this.self = scope.self;
      const actions = [];
      scope.actionExecutor = (action) => actions.push(action);
      const {config} = this.machine;
      // A context that is no function of the input gets the input's members.
      if (typeof config.context !== 'function' && isObject(input) && keys(input).length > 0) {
        this.machine.config = {...config, context: {...config.context, ...input}};
      }
      const snapshot = this.machine.getInitialSnapshot(scope, input);
      if (snapshot.status === 'error') throw snapshot.error;
      return this.taken(snapshot, true, actions);
    }
    restorable(state) {
      checkState(state);
      activeNodes(this.root, state.value);
      return {...state, children: state.children ?? {}, historyValue: state.historyValue ?? {}};
    }
    restorableText(state) {
      return stringify(this.restorable(state));
    }
    step(state, event) {
      const scope = this.scope();
      this.self = scope.self;
      const before = this.machine.restoreSnapshot(this.restorable(state), scope);
      scope.self._snapshot = before;
      if (!this.handles(before, event)) return this.document(before, false, []);
      const after = this.machine.transition(before, event, scope);
      if (after.status === 'error') throw after.error;
      return this.taken(after, true, this.last.actions);
    }
    handles(before, event) {
      return before.status === 'active' && this.machine.getTransitionData(before, event).length > 0;
    }
    taken(snapshot, isHandled, actions) {
      return this.document(snapshot, isHandled, actions.flatMap((action) => this.asked(action, snapshot)));
    }
    document(snapshot, isHandled, actions) {
      return {newState: this.machine.getPersistedSnapshot(snapshot), ...this.summary(snapshot, isHandled, actions)};
    }
    summary(snapshot, isHandled, actions) {
      return {
        handled: isHandled,
        actions,
        value: snapshot.value,
        final: snapshot.status === 'done',
        output: snapshot.output,
      };
    }
    asked({type, params, exec, info}, snapshot) {
      if (type === enteredMark) {
        const {context} = snapshot;
        return metaActions(this.machine.idMap.get(params.id), {...context, context, event: info.event}, info.event);
      }
      if (type === 'xstate.log') return exec?.(), [];
      if (type.startsWith('xstate.')) return [this.builtin(type, params)];
      const isNamed = exec === undefined || this.machine.implementations.actions[type] === exec;
      if (!isNamed) return exec(info, params), [];
      return [{type, params}];
    }
    // Actors in them are not JSON.
    builtin(type, params) {
      const {to, targetId, event, id, delay, sendId, src} = params ?? {};
      const other = to !== undefined && to !== this.self && to?.sessionId !== 'x:0' ? targetId ?? to?.id ?? 'another actor' : undefined;
      const from = typeof src === 'string' ? src : src === undefined ? undefined : id ?? 'inline';
      return {type, params: {to: other, event, id, delay, sendId, src: from}};
    }
    refine(result) {
      if (this.last === null) return result;
      const {before, after, actions, event} = this.last;
      const isHandled = this.handles(before, event);
      const entered = new Set(actions.filter(({type}) => type === enteredMark).map(({params}) => params.id));
      const {context} = after;
      const staying = activeNodes(this.root, after.value).filter((node) => !entered.has(node.id));
      const stayed = staying.flatMap((node) => metaActions(node, {...context, context, event}, event));
      const own = (result.actions ?? []).filter((action) => !String(action?.type).startsWith('xstate.') && action?.type !== enteredMark);
      const timers = actions.filter(({type}) => type.startsWith('xstate.')).flatMap((action) => this.asked(action, after));
      return {newState: result.newState, ...this.summary(after, isHandled, isHandled ? [...without(own, stayed), ...timers] : [])};
    }
    ignored(state, event) {
      const document = this.step(state, event);
      return document.handled ? null : document;
    }
    definition() {
      return drawing(this.root, (node) => [
        ...[...node.transitions.values()].flat().map((transition) => this.arrow(node, transition)),
        ...(node.always ?? []).map((transition) => ({...this.arrow(node, transition), event: ''})),
      ]);
    }
    arrow(node, {eventType, target, guard}) {
      const after = node.after.find((delayed) => delayed.eventType === eventType);
      return {event: eventType, targets: target ?? [], guard: nameOfGuard(guard), delay: after?.delay};
    }
  }

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
  const isMachine4 = (value) => value?.__xstatenode === true && typeof value.getInitialState === 'function';
  const isMachine5 = (value) => value?.__xstatenode === true && typeof value.getInitialSnapshot === 'function';
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
