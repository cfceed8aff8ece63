// How machines of XState 5 are stepped, and the actors that they invoke and spawn with them.
//
// The whole is an expression: a function of what the prelude shares, which returns what it needs.
(function (shared) {
  'use strict';
  const {
    Effects, activeNodes, addressOf, assign, behindAnEntryPoint, checkActor, checkChildren, checkState, drawing,
    eachRef, enteredMark, goneActor, insteadOfIt, invalid, isArray, isFailure, isObject, keys, known, knownByName,
    knownPrefix, label, log, metaActions, nameOfGuard, nameOfInvoke, nameOfKnown, nearest, parse, refMark, sessionIn,
    stringify, without,
  } = shared;

  const isMachine5 = (value) => value?.__xstatenode === true && typeof value.getInitialSnapshot === 'function';

  const marked5 = new Set();
  function mark5(machine) {
    if (marked5.has(machine)) return;
    marked5.add(machine);
    for (const node of machine.idMap.values()) node.entry.unshift({type: enteredMark, params: {id: node.id}});
  }

  function asked5(machine, {type, params, exec, info}, snapshot) {
    if (type === enteredMark) {
      const {context} = snapshot;
      return metaActions(machine.idMap.get(params.id), {...context, context, event: info.event}, info.event);
    }
    if (type === 'xstate.log') return exec?.(), [];
    if (!isNamed5(machine, type, exec)) return exec(info, params), [];
    return [{type, params}];
  }
  const isNamed5 = (machine, type, exec) => exec === undefined || machine.implementations.actions[type] === exec;
  const isBuiltin5 = (type) => type.startsWith('xstate.') && type !== 'xstate.log';

  // Why an actor of this logic would be lost with the process; nothing if it would not.
  function obstacle5(logic) {
    if (isMachine5(logic)) return undefined;
    if (typeof logic?.transition !== 'function') return 'which is not among the actors of the machine';
    // Of a function from state to state (fromTransition) all is in its state.
    if (typeof logic.start !== 'function') return undefined;
    return `which is ${kindOfLogic(logic)} and would be lost with the process`;
  }
  function kindOfLogic(logic) {
    const endsOn = (type) => {
      try {
        return logic.transition(logic.getInitialSnapshot({}, undefined), {type}, {self: {}}).status === 'done';
      } catch {
        return false;
      }
    };
    if (endsOn('xstate.promise.resolve')) return 'a promise (fromPromise)';
    if (endsOn('xstate.observable.complete')) return 'an observable (fromObservable)';
    return typeof logic.config === 'function' ? 'a callback (fromCallback)' : 'logic with a start of its own';
  }

  // As XState 5 finds it.
  function logicOf5(machine, src) {
    if (typeof src !== 'string') return src;
    const [, index, id] = /^xstate\.invoke\.(\d+)\.(.*)/.exec(src) ?? [];
    if (id === undefined) return machine.implementations.actors[src] ?? knownByName(src)[0];
    const invoke = machine.idMap.get(id)?.config.invoke;
    return (isArray(invoke) ? invoke[index] : invoke)?.src;
  }
  function sourceOf5(machine, logic, address) {
    const {actors} = machine.implementations;
    const name = keys(actors).find((key) => actors[key] === logic);
    if (name !== undefined) return name;
    if (known.includes(logic)) return nameOfKnown(logic, address);
    throw invalid(`the machine ${machine.id} spawns ${address}, which is made while it runs or has no name: give it one (setup({actors: {name: ...}})) and spawn that`);
  }

  // Refuses what would be lost with the process.
  function checkMachine5(machine, seen = new Set()) {
    if (seen.has(machine)) return;
    seen.add(machine);
    mark5(machine);
    const {actors, actions} = machine.implementations;
    const check = (where, logic) => {
      const obstacle = obstacle5(logic);
      if (obstacle !== undefined) throw invalid(`the machine ${machine.id}: ${where} ${obstacle}: ${insteadOfIt}`);
      if (isMachine5(logic)) checkMachine5(logic, seen);
    };
    for (const node of machine.idMap.values()) {
      for (const {id, src} of node.invoke) {
        const name = src.startsWith('xstate.invoke.') ? id : nameOfInvoke(id, src);
        check(`the state ${node.id} invokes ${name},`, logicOf5(machine, src));
      }
      for (const action of actionsOf5(node)) {
        const {type, src, id} = actions[action?.type ?? action] ?? action ?? {};
        if (type === 'xstate.spawnChild') check(`the state ${node.id} spawns ${nameOfInvoke(typeof id === 'string' ? id : 'an actor', typeof src === 'string' ? src : undefined)},`, logicOf5(machine, src));
      }
    }
    for (const name of keys(actors)) check(`its setup has the actor ${name},`, actors[name]);
  }
  function actionsOf5(node) {
    const transitions = [...[...node.transitions.values()].flat(), ...(node.always ?? []), ...(node.initial ? [node.initial] : [])];
    return [...node.entry, ...node.exit, ...transitions.flatMap(({actions}) => actions)];
  }

  // The machine and its actors in one step: XState 5's own actors, in a system that keeps delays for the host. The machine
  // itself has no actor of XState's; its part is played here.
  class World5 {
    constructor(machine, transition, sessions) {
      this.machine = machine;
      this.transition = transition;
      this.effects = new Effects(sessions);
      this.actors = new Map();  // By session, also those that are no more.
      this.documents = new Map();  // While they are restored: what the state has of each.
      this.wereLive = [];
      this.mailbox = [];
      this.deferred = [];
      this.isBusy = false;
      this.isRestoring = false;
      const keyed = new Map();
      const nothing = () => {};
      const unsubscribable = () => ({unsubscribe: nothing});
      const system = {
        _bookId: () => (this.isRestoring ? '' : `x:${this.effects.newSession()}`),
        _register: (id) => id,
        _unregister: (actor) => {
          if (keyed.get(actor.systemId) === actor) keyed.delete(actor.systemId);
        },
        _set: (id, actor) => {
          if (keyed.has(id) && keyed.get(id) !== actor) throw new Error(`Actor with system ID '${id}' already exists.`);
          keyed.set(id, actor);
        },
        // Of each actor that is made, before it works out its first state.
        _sendInspectionEvent: ({type, actorRef}) => {
          if (type === '@xstate.actor') this.adopt(actorRef);
        },
        _relay: (source, target, event) => this.relay(source, target, event),
        _clock: {setTimeout: nothing, clearTimeout: nothing},
        _logger: log,
        _snapshot: {_scheduledEvents: {}},
        get: (id) => keyed.get(id),
        getAll: () => Object.fromEntries(keyed),
        inspect: unsubscribable,
        getSnapshot: () => ({_scheduledEvents: {}}),
        start: nothing,
        scheduler: {
          schedule: (...scheduled) => this.schedule(...scheduled),
          cancel: (source, id) => this.cancel(source, id),
          cancelAll: nothing,  // Those of actors that end are the host's to drop.
        },
      };
      const self = {id: machine.id, sessionId: 'x:0', src: machine, logic: machine, system, options: {}};
      assign(self, {ref: self, path: '', getSnapshot: () => self._snapshot, subscribe: unsubscribable, on: unsubscribable});
      self.toJSON = () => ({[refMark]: 1, id: self.id, session: 0});
      self._send = (event) => this.receive(event);
      self.send = (event) => this.relay(undefined, self, event);
      this.self = self;
      this.actors.set(0, self);
      this.scope = {
        self,
        system,
        id: machine.id,
        sessionId: 'x:0',
        logger: log,
        defer: (work) => this.deferred.push(work),
        stopChild: (child) => {
          if (child._parent !== self) throw new Error(`Cannot stop child actor ${child.id} of ${self.id} because it is not a child`);
          child._stop();
        },
        emit: nothing,
        actionExecutor: nothing,
      };
    }
    // The whole of a step.
    whole(work) {
      try {
        work();
      } catch (thrown) {
        this.effects.fail(thrown);
      }
      if (this.effects.failure !== null) throw this.effects.failure.thrown;
    }
    begin(input) {
      this.whole(() => {
        this.isBusy = true;
        this.take(() => this.machine.getInitialSnapshot(this.scope, input));
        this.drain();
      });
    }
    restore(document) {
      this.whole(() => this.restoreAll(document));
    }
    restoreAll(document) {
      const {self} = this;
      const refs = [];
      this.isRestoring = true;
      this.prepare(this.machine, document, '', refs);
      this.documents.set(self, document);
      self._snapshot = this.machine.restoreSnapshot(document, this.scope);
      for (const child of Object.values(self._snapshot.children)) if (child._snapshot.status === 'active') child.start();
      for (const {container, key, id, session} of refs) container[key] = this.actors.get(session) ?? goneActor(id, session);
      this.isRestoring = false;
      if (this.effects.failure !== null) return;
      this.wereLive = this.live();
      this.effects.sessions = Math.max(this.effects.sessions, ...[...this.actors.keys()].map((session) => session + 1));
      for (const [actor, {status}] of this.documents) {
        if (actor._snapshot.status === 'error' && status !== 'error') throw actor._snapshot.error;
      }
    }
    // Sees to it that XState finds what it looks for in the document of a machine's state.
    prepare(machine, document, path, refs) {
      eachRef(document.context, (container, key, {id, session}) => refs.push({container, key, id, session}));
      checkChildren(document.children);
      for (const id of keys(document.children ?? {})) {
        const child = document.children[id];
        const name = (path === '' ? '' : path + '/') + label(id);
        const logic = logicOf5(machine, child?.src);
        if (obstacle5(logic) !== undefined) throw invalid(`the state has the actor ${name} of ${child?.src}, which the machine ${machine.id} does not have`);
        if (child.src.startsWith(knownPrefix)) child.src = logic;
        if (!isMachine5(logic)) continue;
        checkState(child.snapshot);
        activeNodes(logic.root, child.snapshot.value);
        child.snapshot.children ??= {};
        this.prepare(logic, child.snapshot, name, refs);
      }
    }
    // An actor as XState makes it, from now on one of the step's.
    adopt(actor) {
      try {
        const {_parent: parent, _actorScope: scope, logic} = actor;
        const restored = this.documents.get(parent)?.children?.[actor.id];
        if (this.isRestoring) {
          scope.sessionId = actor.sessionId = `x:${restored?.session}`;
          this.documents.set(actor, restored.snapshot);
        }
        const session = this.isRestoring ? restored?.session : Number(actor.sessionId.slice(2));
        const path = (parent.path === '' ? '' : parent.path + '/') + label(actor.id);
        assign(actor, {path, session, depth: (parent.depth ?? 0) + 1, address: `${path}#${session}`});
        checkActor(actor, this.actors);
        const obstacle = obstacle5(logic);
        if (obstacle !== undefined) {
          throw invalid(`the machine ${parent.logic.id} spawns ${nameOfInvoke(actor.id, typeof actor.src === 'string' ? actor.src : undefined)}, ${obstacle}: ${insteadOfIt}`);
        }
        this.actors.set(session, actor);
        if (!isMachine5(logic)) return;
        mark5(logic);
        scope.actionExecutor = (action) => {
          const run = () => this.execute(actor, action);
          if (actor._processingStatus === isRunning) run();
          else actor._deferred.push(run);
        };
      } catch (thrown) {
        this.effects.fail(thrown);
      }
    }
    // What the host is asked for is so once the actor is in its new state.
    execute(actor, action) {
      const {type, exec, info, params} = action;
      if (type !== enteredMark && (isBuiltin5(type) || type === 'xstate.log' || !isNamed5(actor.logic, type, exec))) return exec?.(info, params);
      actor._deferred.push(() => this.effects.ask(actor.address, asked5(actor.logic, action, actor._snapshot)));
    }

    // The part of the machine's own actor.
    receive(event) {
      this.mailbox.push(event);
      if (!this.isBusy) this.drain();
    }
    drain() {
      this.isBusy = true;
      try {
        while (this.mailbox.length > 0 && this.self._snapshot.status === 'active') {
          const event = this.mailbox.shift();
          this.take(() => this.transition(this.self._snapshot, event, this.scope));
        }
      } catch (thrown) {
        this.effects.fail(thrown);
      } finally {
        this.isBusy = false;
      }
    }
    take(decide) {
      const actions = [];
      this.scope.actionExecutor = (action) => {
        if (isBuiltin5(action.type)) action.exec?.(action.info, action.params);
        else actions.push(action);
      };
      const snapshot = decide();
      this.self._snapshot = snapshot;
      this.effects.ask(undefined, actions.flatMap((action) => asked5(this.machine, action, snapshot)));
      while (this.deferred.length > 0) this.deferred.shift()();
      if (snapshot.status === 'error') throw snapshot.error;
    }

    relay(source, target, event) {
      if (this.isRestoring) return;  // Actors that are restored tell of their state, which is known.
      this.effects.countMessage();
      // The host keeps it: what the machine sends itself begins a step of its own.
      if (source === this.self && target === this.self) return this.effects.ask(undefined, [{type: 'xstate.sendTo', params: {event}}]);
      target._send(event);
    }
    schedule(source, target, event, delay, id) {
      const addressed = target === this.self ? event : {...event, [addressOf]: target?.address ?? `${label(target?.id)}#0`};
      if (source === this.self) return this.effects.ask(undefined, [{type: 'xstate.raise', params: {event: addressed, id, delay}}]);
      const name = `${source.address}:${id ?? event.type}`;
      this.effects.start({source: source.address, id: name, delay, event: addressed, replaces: id !== undefined && id !== null});
    }
    cancel(source, id) {
      if (source === this.self) return this.effects.ask(undefined, [{type: 'xstate.cancel', params: {sendId: id}}]);
      this.effects.cancel(`${source.address}:${id}`);
    }

    isLive(actor) {
      if (actor === this.self) return actor._snapshot.status === 'active';
      const {children} = actor._parent._snapshot;
      return actor._processingStatus === isRunning && children?.[actor.id] === actor && this.isLive(actor._parent);
    }
    live() {
      return [...this.actors.values()].filter((actor) => this.isLive(actor));
    }
    // Nothing: nobody.
    addressee(event) {
      const {[addressOf]: address, ...own} = event;
      if (address === undefined) return {actor: this.self, event};
      const found = this.actors.get(sessionIn(address));
      const actor = found !== undefined && this.isLive(found) ? found : isFailure(own) ? nearest(address, this.live()) : undefined;
      eachRef([own], (container, key, {id, session}) => {
        container[key] = this.actors.get(session) ?? goneActor(id, session);
      });
      return {actor, event: own};
    }
    handles(actor, event) {
      if (actor === undefined || !this.isLive(actor)) return false;
      return !isMachine5(actor.logic) || actor.logic.getTransitionData(actor._snapshot, event).length > 0;
    }
    newState() {
      const {_snapshot: snapshot} = this.self;
      const document = this.machine.getPersistedSnapshot(snapshot);
      if (this.effects.sessions === 1) return document;
      this.complete(document, snapshot, this.machine);
      return {...document, sessions: this.effects.sessions};
    }
    // What XState leaves out of a state with actors.
    complete(document, snapshot, machine) {
      withSessions(document.context, snapshot.context);
      for (const id of keys(document.children ?? {})) {
        const actor = snapshot.children[id];
        const child = document.children[id];
        child.session = actor.session;
        if (typeof child.src !== 'string') child.src = sourceOf5(machine, actor.logic, actor.address);
        if (isMachine5(actor.logic)) this.complete(child.snapshot, actor._snapshot, actor.logic);
      }
    }
    // Also those that have ended, as long as XState has them.
    below(snapshot = this.self._snapshot) {
      return Object.values(snapshot.children ?? {}).flatMap((actor) => [actor, ...this.below(actor._snapshot)]);
    }
    document() {
      const live = this.live();
      const made = [...this.actors.values()].filter((actor) => actor !== this.self && !this.documents.has(actor));
      const ended = [...this.wereLive, ...made].filter((actor) => actor !== this.self && !live.includes(actor));
      return this.effects.document(
        (address) => live.some((actor) => actor.address === address),
        ended.map(({address}) => address),
        (this.isLive(this.self) ? this.below() : []).map((actor) => ({actor: actor.address, ...stateOf5(actor)}))
      );
    }
  }
  const isRunning = 1;  // XState's ProcessingStatus.
  // Where an actor is, for people.
  const stateOf5 = ({_snapshot: {value, status}}) => ({value: value ?? status, ...(status !== 'active' && {status})});
  // Adds the sessions to the documents of actors within a context.
  function withSessions(document, live) {
    for (const key of keys(document ?? {})) {
      const one = live[key];
      if (document[key] === one) continue;
      if (document[key]?.[refMark] === 1) document[key].session = Number(one.sessionId.slice(2));
      else withSessions(document[key], one);
    }
  }

  class Machine5 {
    constructor(machine) {
      this.machine = machine;
      this.root = machine.root;
      mark5(machine);
      this.last = null;
      const transition = machine.transition;
      this.transition = transition;
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
    check() {
      checkMachine5(this.machine);
    }
    checkEntryPoint() {
      if ([...this.machine.idMap.values()].some(({invoke}) => invoke.length > 0)) throw behindAnEntryPoint(this.machine);
    }
    warm() {
      for (const node of this.machine.idMap.values()) [node.invoke, node.on, node.after, node.initial, node.events];
      const world = this.world(1);
      const snapshot = this.machine.getInitialSnapshot(world.scope, {});
      if (snapshot.status !== 'active') return;
      world.self._snapshot = snapshot;
      const restored = this.restored(parse(stringify(world.newState())));
      this.transition(restored.self._snapshot, {type: 'hangar.warm'}, restored.scope);
    }
    world(sessions) {
      return new World5(this.machine, this.transition, sessions);
    }
    start(input) {
      const {config} = this.machine;
      // A context that is no function of the input gets the input's members.
      if (typeof config.context !== 'function' && isObject(input) && keys(input).length > 0) {
        this.machine.config = {...config, context: {...config.context, ...input}};
      }
      const world = this.world(1);
      world.begin(input);
      return this.document(world, true);
    }
    restorable(state) {
      checkState(state);
      activeNodes(this.root, state.value);
      return {...state, children: state.children ?? {}, historyValue: state.historyValue ?? {}};
    }
    restorableText(state) {
      return stringify(this.restorable(state));
    }
    restored(state) {
      const world = this.world(state?.sessions ?? 1);
      world.restore(this.restorable(state));
      return world;
    }
    step(state, event) {
      const world = this.restored(state);
      const {actor, event: own} = world.addressee(event);
      const isHandled = world.handles(actor, own);
      if (isHandled) world.whole(() => actor._send(own));
      return this.document(world, isHandled);
    }
    handles(before, event) {
      return before.status === 'active' && this.machine.getTransitionData(before, event).length > 0;
    }
    document(world, isHandled) {
      const {_snapshot: snapshot} = world.self;
      return {newState: world.newState(), ...this.summary(snapshot, isHandled, world.effects.actions), ...world.document()};
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
    // Of an entry point, whose actors are not JSON.
    builtin(type, params) {
      const {to, targetId, event, id, delay, sendId, src} = params ?? {};
      const other = to !== undefined && to?.logic !== this.machine ? targetId ?? to?.id ?? 'another actor' : undefined;
      const from = typeof src === 'string' ? src : src === undefined ? undefined : id ?? 'inline';
      return {type, params: {to: other, event, id, delay, sendId, src: from}};
    }
    refine(result) {
      if (this.last === null || 'handled' in result) return result;
      const {before, after, actions, event} = this.last;
      if (keys(after.children).length > 0) throw behindAnEntryPoint(this.machine);
      const isHandled = this.handles(before, event);
      const entered = new Set(actions.filter(({type}) => type === enteredMark).map(({params}) => params.id));
      const {context} = after;
      const staying = activeNodes(this.root, after.value).filter((node) => !entered.has(node.id));
      const stayed = staying.flatMap((node) => metaActions(node, {...context, context, event}, event));
      const own = (result.actions ?? []).filter((action) => !String(action?.type).startsWith('xstate.') && action?.type !== enteredMark);
      const timers = actions.filter(({type}) => type.startsWith('xstate.')).flatMap((action) =>
        isBuiltin5(action.type) ? [this.builtin(action.type, action.params)] : asked5(this.machine, action, after)
      );
      return {newState: result.newState, ...this.summary(after, isHandled, isHandled ? [...without(own, stayed), ...timers] : [])};
    }
    ignored(state, event) {
      const document = this.step(state, event);
      return document.handled ? null : document;
    }
    definition() {
      return definition5(this.machine);
    }
    actors(state) {
      const below = this.restored(state).below();
      return below.map((actor) => ({actor: actor.address, ...stateOf5(actor), ...(isMachine5(actor.logic) && {definition: definition5(actor.logic)})}));
    }
  }
  function definition5(machine) {
    const arrow = (node, {eventType, target, guard}) => {
      const after = node.after.find((delayed) => delayed.eventType === eventType);
      return {event: eventType, targets: target ?? [], guard: nameOfGuard(guard), delay: after?.delay};
    };
    return drawing(machine.root, (node) => [
      ...[...node.transitions.values()].flat().map((transition) => arrow(node, transition)),
      ...(node.always ?? []).map((transition) => ({...arrow(node, transition), event: ''})),
    ]);
  }

  return {Machine5, isMachine5};
});
