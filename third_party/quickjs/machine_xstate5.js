// How machines of XState 5 are stepped without its interpreter.
//
// The whole is an expression: a function of what the prelude shares, which returns what it needs.
(function (shared) {
  'use strict';
  const {
    activeNodes, checkState, drawing, enteredMark, isObject, keys, log, metaActions, nameOfGuard, parse, stringify,
    without,
  } = shared;

  const isMachine5 = (value) => value?.__xstatenode === true && typeof value.getInitialSnapshot === 'function';

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

  return {Machine5, isMachine5};
});
