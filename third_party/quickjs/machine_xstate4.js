// How machines of XState 4 are stepped without its interpreter, and the machines that they invoke and spawn with them.
//
// The whole is an expression: a function of what the prelude shares, which returns what it needs.
(function (shared) {
  'use strict';
  const {
    Effects, Fault, activeNodes, addressOf, assign, behindAnEntryPoint, checkActor, checkChildren, checkState,
    defineProperty, drawing, eachRef, enteredMark, everyNode, goneActor, insteadOfIt, invalid, isArray, isFailure,
    isObject, keys, known, knownByName, label, log, metaActions, nameOfGuard, nameOfInvoke, nameOfKnown, nearest,
    parse, refMark, sessionIn, shown, stringify, without,
  } = shared;

  const isMachine4 = (value) => value?.__xstatenode === true && typeof value.getInitialState === 'function';

  // Marks the states of a machine, so that entering one can be seen among the actions. Its states by id.
  const marked4 = new Map();
  function mark4(machine) {
    if (!marked4.has(machine)) {
      for (const node of everyNode(machine)) node.onEntry.unshift({type: enteredMark, id: node.id});
      marked4.set(machine, new Map(everyNode(machine).map((node) => [node.id, node])));
    }
    return marked4.get(machine);
  }

  function asked4(machine, action, state, event = state.event) {
    const {type, exec} = action;
    if (type === enteredMark) return metaActions(mark4(machine).get(action.id), state.context, event);
    if (type === 'xstate.log') return log(...[action.label, action.value].filter((part) => part !== undefined)), [];
    if (type.startsWith('xstate.')) {
      const {exec: dropped, ...rest} = action;
      return [rest];
    }
    const isInline = typeof exec === 'function' && !(type in machine.options.actions);
    if (isInline) return exec(state.context, event, {action, state, _event: state._event}), [];
    const {type: ignored, exec: dropped, params, ...others} = action;
    return [{type, params: params ?? others}];
  }

  // What `data` of a final state or an invoked machine stands for.
  function mapped4(data, context, event) {
    if (typeof data === 'function') return data(context, event);
    if (!isObject(data)) return data;
    const result = {};
    for (const key of keys(data)) result[key] = typeof data[key] === 'function' ? data[key](context, event) : data[key];
    return result;
  }
  function output4(machine, state) {
    const isEnd = (node) => node.type === 'final' && node.parent === machine && node.doneData !== undefined;
    const end = activeNodes(machine, state.value).find(isEnd);
    return end && mapped4(end.doneData, state.context, state.event);
  }

  const scxml = (event, more) => ({name: event.type, data: event, $$type: 'scxml', type: 'external', ...more});

  // XState 4's spawn() looks who spawns at the top of a stack that is not exported. It pushes `undefined` there while it
  // works out the first state of an invoked machine, here one of ours. Null: this version does otherwise.
  const stacks4 = new Map();
  function stackOf(StateNode) {
    if (stacks4.has(StateNode)) return stacks4.get(StateNode);
    const {push} = Array.prototype;
    let last = null;
    let stack = null;
    const child = new StateNode({id: 'hangar.child'});
    defineProperty(child, 'initialState', {get: () => void (stack = last)});
    const parent = new StateNode({id: 'hangar.parent', invoke: {id: 'child', src: child}});
    Array.prototype.push = function (...items) {
      if (items.length === 1 && items[0] === undefined) last = this;
      return push.apply(this, items);
    };
    try {
      parent.initialState;
    } catch {
      stack = null;
    } finally {
      Array.prototype.push = push;
    }
    if (!isArray(stack) || stack.length > 0) stack = null;
    stacks4.set(StateNode, stack);
    return stack;
  }

  // Refuses what would be lost with the process.
  function checkMachine4(machine, seen = new Set()) {
    if (seen.has(machine)) return;
    seen.add(machine);
    mark4(machine);
    const services = machine.options.services ?? {};
    const refuse = (where, what) => {
      throw invalid(`the machine ${machine.id}: ${where} ${what}: ${insteadOfIt}`);
    };
    for (const node of everyNode(machine)) {
      for (const {type, id} of node.activities) {
        if (type !== 'xstate.invoke') refuse(`the state ${node.id} has the activity ${id ?? type},`, 'which would be lost with the process');
      }
      for (const {id, src} of node.invoke) {
        const name = src?.type ?? src;
        if (!isMachine4(services[name])) refuse(`the state ${node.id} invokes ${nameOfInvoke(id, name)},`, obstacle4(services[name]));
      }
    }
    for (const name of keys(services)) {
      if (isMachine4(services[name])) checkMachine4(services[name], seen);
      else refuse(`its options have the service ${name},`, obstacle4(services[name]));
    }
  }
  function obstacle4(service) {
    if (service === undefined || service === null) return 'which is not among the services of the machine';
    if (typeof service === 'function') return 'which is a function (a promise, a callback or an observable) and would be lost with the process';
    return 'which is no machine and would be lost with the process';
  }

  class Actor4 {
    constructor(world, parent, id, machine, session) {
      this.world = world;
      this.parent = parent;
      this.id = id;
      this.machine = machine;
      this.session = session;
      this.sessionId = `x:${session}`;
      this.path = parent === null ? '' : (parent.path === '' ? '' : parent.path + '/') + label(id);
      this.address = parent === null ? undefined : `${this.path}#${session}`;
      this.depth = parent === null ? 0 : parent.depth + 1;
      this.state = null;
      this.children = new Map();
      this.forwards = false;  // All that its parent gets it gets, too.
      this.syncs = false;  // Its parent gets each of its states.
      this.mailbox = [];
      this.isBusy = false;
      this.isLive = true;
      this.send = (event, payload) => world.receive(this, scxml(typeof event === 'string' ? {...payload, type: event} : event));
      this.ref = this;
    }
    getSnapshot() {
      return this.state;
    }
    subscribe() {
      return {unsubscribe() {}};
    }
    // XState's spawn() calls it.
    spawn(entity, name, options) {
      return this.world.spawn(this, entity, name, options);
    }
    toJSON() {
      return {[refMark]: 1, id: this.id, session: this.session};
    }
  }

  // The machine and its actors in one step, as XState 4's interpreter runs them.
  class World4 {
    constructor(owner, sessions) {
      this.State = owner.State ?? owner.root.initialState.constructor;
      this.effects = new Effects(sessions);
      this.root = new Actor4(this, null, owner.root.id, owner.root, 0);
      this.actors = new Map([[0, this.root]]);
      this.isHandled = false;
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
    begin(context) {
      const {root} = this;
      this.whole(() => {
        root.isBusy = true;
        this.take(root, this.within(root, () => root.machine.getInitialState(root.machine.initialStateValue, context)));
        this.drain(root);
      });
    }
    restore(state, restorable) {
      const {root} = this;
      root.state = this.State.create(restorable);
      this.restoreChildren(root, state.children ?? {});
      this.effects.sessions = Math.max(this.effects.sessions, ...[...this.actors.keys()].map((session) => session + 1));
      for (const [, actor] of this.actors) {
        actor.state.children = Object.fromEntries(actor.children);
        eachRef(actor.state.context, (container, key, {id, session}) => {
          container[key] = this.actors.get(session) ?? goneActor(id, session);
        });
      }
    }
    restoreChildren(parent, documents) {
      checkChildren(documents);
      for (const id of keys(documents)) {
        const {snapshot, src, session, forwards, syncs} = documents[id];
        const actor = new Actor4(this, parent, id, machineOf4(parent.machine, src), session);
        checkActor(actor, this.actors);
        checkState(snapshot);
        activeNodes(actor.machine, snapshot.value);
        mark4(actor.machine);
        actor.machine._init();  // It adds what begins and cancels delays to the states.
        const event = {name: 'xstate.init', data: {type: 'xstate.init'}, $$type: 'scxml', type: 'external'};
        actor.state = this.State.create({...snapshot, children: {}, _event: event, configuration: [], transitions: []});
        assign(actor, {src, forwards: forwards === true, syncs: syncs === true});
        parent.children.set(id, actor);
        this.actors.set(session, actor);
        this.restoreChildren(actor, snapshot.children ?? {});
      }
    }
    within(actor, work) {
      const stack = stackOf(actor.machine.constructor) ?? [];
      const depth = stack.length;
      stack.push(actor);
      try {
        return work();
      } finally {
        stack.length = depth;
      }
    }

    receive(actor, event) {
      this.effects.countMessage();
      if (!actor.isLive) return;
      actor.mailbox.push(event);
      if (!actor.isBusy) this.drain(actor);
    }
    drain(actor) {
      this.guarded(actor, () => {
        while (actor.isLive && actor.mailbox.length > 0) this.process(actor, actor.mailbox.shift());
      });
    }
    // What an actor throws is told its parent, as version 5 has it; version 4 knows that of promises only.
    guarded(actor, work) {
      actor.isBusy = true;
      try {
        work();
      } catch (thrown) {
        const {parent} = actor;
        if (this.effects.failure !== null || parent === null || thrown instanceof Fault) this.effects.fail(thrown);
        this.remove(actor);
        const type = `error.platform.${actor.id}`;
        this.receive(parent, scxml({type, data: thrown}, {origin: actor.sessionId}));
      } finally {
        actor.isBusy = false;
      }
    }
    process(actor, event) {
      for (const child of [...actor.children.values()]) {
        if (child.forwards) this.receive(child, event);
      }
      const isError = (name) => name.startsWith('error.platform');
      if (event.origin !== undefined && isError(event.name) && !activeNodes(actor.machine, actor.state.value).some((node) => node.ownEvents.some(isError))) {
        throw event.data.data;
      }
      const state = this.within(actor, () => actor.machine.transition(actor.state, event));
      if (state.transitions.length > 0 || state.changed === true) this.isHandled = true;
      this.take(actor, state, event.data);
    }
    take(actor, state, event) {
      actor.state = state;
      for (const action of state.actions) this.perform(actor, action, state, event);
      if (stackOf(actor.machine.constructor) === null) refuseDeferred(actor, state.context);
      for (const [id, child] of actor.children) state.children[id] = child;
      if (!actor.isLive) return;
      if (actor.syncs) this.receive(actor.parent, scxml({type: 'xstate.update', state, id: actor.id}));
      if (state.done) this.finish(actor);
    }
    perform(actor, action, state, event) {
      const {activity} = action;
      switch (action.type) {
        case 'xstate.send':
        case 'xstate.raise':
          return this.send(actor, action);
        case 'xstate.start':
          // What is left again in the same step is not begun.
          if (state.activities[activity.id || activity.type] !== false) this.invoke(actor, activity, state);
          return;
        case 'xstate.stop': {
          const child = actor.children.get(activity.id);
          if (child !== undefined) this.stop(child);
          return;
        }
        case 'xstate.cancel':
          if (actor !== this.root) return this.effects.cancel(`${actor.address}:${action.sendId}`);
      }
      this.effects.ask(actor.address, asked4(actor.machine, action, state, event));
    }
    send(actor, action) {
      const {exec, to, ...rest} = action;
      const {event, delay, id} = rest;
      const target = this.target(actor, to, event);
      const isDelayed = delay !== undefined && delay !== null;
      const addressed = target.address === undefined ? event : {...event, [addressOf]: target.address};
      // The host keeps it: what the machine sends itself begins a step of its own.
      if (actor === this.root && (isDelayed || target === actor)) {
        this.effects.ask(undefined, [{...rest, event: addressed}]);
      } else if (isDelayed) {
        const timer = {source: actor.address, id: `${actor.address}:${id}`, delay, event: addressed, replaces: id !== event.type};
        this.effects.start(timer);
      } else if (actor.isLive || target !== actor.parent) {
        const name = event.type === 'xstate.error' ? `error.platform.${actor.id}` : event.type;
        this.receive(target, {...scxml(event, {origin: actor.sessionId}), name});
      }
    }
    target(actor, to, event) {
      if (to === undefined || to === null || to === '#_internal') return actor;
      if (to === '#_parent' || (actor.parent !== null && to === actor.parent.id)) {
        if (actor.parent !== null) return actor.parent;
        throw invalid(`the machine ${actor.machine.id} sends ${event.type} to its parent and has none: ask the host for an action SEND`);
      }
      const found =
        typeof to === 'string' ? actor.children.get(to) ?? this.actors.get(Number(/^x:(\d+)$/.exec(to)?.[1])) : typeof to?.send === 'function' ? to : undefined;
      if (found !== undefined) return found;
      throw new Error(`the machine ${actor.machine.id} sends ${event.type} to ${shown(to)}, which is none of its actors`);
    }

    invoke(actor, activity, state) {
      const src = activity.src?.type ?? activity.src;
      const service = actor.machine.options.services?.[src];
      if (activity.type !== 'xstate.invoke' || !isMachine4(service)) {
        const what = activity.type === 'xstate.invoke' ? obstacle4(service) : 'which is an activity and would be lost with the process';
        throw invalid(`the machine ${actor.machine.id} invokes ${nameOfInvoke(activity.id, src)}, ${what}: ${insteadOfIt}`);
      }
      const context = activity.data === undefined ? service.context : mapped4(activity.data, state.context, state.event);
      this.add(actor, activity.id, service, context, {src, forwards: activity.autoForward === true || activity.forward === true, syncs: false});
    }
    spawn(actor, entity, name, {sync, autoForward}) {
      if (!isMachine4(entity)) {
        const what = typeof entity?.then === 'function' ? 'a promise' : typeof entity === 'function' ? 'a callback' : 'no machine';
        this.effects.fail(invalid(`the machine ${actor.machine.id} spawns ${name}, which is ${what} and would be lost with the process: ${insteadOfIt}`));
      }
      // The names that XState gives are those of the process: each step would begin again with the first.
      const id = /^[0-9a-f]+$/.test(name) && actor.children.has(name) ? `x:${this.effects.sessions}` : name;
      const machine = known.find((one) => isSameMachine4(one, entity));
      if (machine === undefined) {
        this.effects.fail(invalid(`the machine ${actor.machine.id} spawns ${id}, whose machine ${entity.id} is made while it runs: make it beside it, outside of its functions`));
      }
      return this.add(actor, id, machine, entity.context, {
        src: keys(actor.machine.options.services ?? {}).find((key) => actor.machine.options.services[key] === machine) ?? nameOfKnown(machine, id),
        forwards: autoForward === true,
        syncs: sync === true,
      });
    }
    add(parent, id, machine, context, more) {
      const before = parent.children.get(id);
      if (before !== undefined) this.stop(before);
      const actor = assign(new Actor4(this, parent, id, machine, this.effects.newSession()), more);
      checkActor(actor, this.actors);
      this.actors.set(actor.session, actor);
      parent.children.set(id, actor);
      mark4(machine);
      machine._init();
      this.guarded(actor, () =>
        this.take(actor, this.within(actor, () => machine.getInitialState(machine.initialStateValue, context)))
      );
      if (actor.isLive) this.drain(actor);
      return actor;
    }

    finish(actor) {
      const {parent, state} = actor;
      for (const child of [...actor.children.values()]) this.stop(child);
      actor.isLive = false;
      if (parent === null) return;
      this.remove(actor);
      const type = `done.invoke.${actor.id}`;
      this.receive(parent, scxml({type, data: output4(actor.machine, state)}, {origin: actor.id}));
    }
    stop(actor) {
      if (!actor.isLive) return;
      actor.isLive = false;
      const {state} = actor;
      if (state !== null) for (const action of this.exitActions(actor)) this.perform(actor, action, state, state.event);
      this.remove(actor);
    }
    // Of all states that it is in, from the innermost.
    exitActions({machine, state}) {
      const {transition} = machine;
      // Nothing that exiting raises is taken, and no eventless transition.
      machine.transition = (reached) => ({...reached, actions: []});
      try {
        const exits = {configuration: [], transitions: [{}], exitSet: [], source: state, actions: []};
        return machine.resolveTransition(exits, state, state.context, undefined, scxml({type: 'xstate.stop'})).actions;
      } finally {
        machine.transition = transition;
      }
    }
    remove(actor) {
      const {parent} = actor;
      actor.isLive = false;
      for (const child of [...actor.children.values()]) this.stop(child);
      if (parent.children.get(actor.id) !== actor) return;
      parent.children.delete(actor.id);
      if (parent.state !== null) delete parent.state.children[actor.id];
    }

    // Nothing: nobody.
    addressee(event) {
      const {[addressOf]: address, ...own} = event;
      if (address === undefined) return {actor: this.root, event};
      const actor = this.actors.get(sessionIn(address)) ?? (isFailure(own) ? nearest(address, [...this.actors.values()]) : undefined);
      eachRef([own], (container, key, {id, session}) => {
        container[key] = this.actors.get(session) ?? goneActor(id, session);
      });
      return {actor, event: own};
    }
    children(actor) {
      const documents = {};
      for (const [id, child] of actor.children) {
        const {value, context, historyValue} = child.state;
        const snapshot = {value, context, historyValue};
        if (child.children.size > 0) snapshot.children = this.children(child);
        documents[id] = {snapshot, src: child.src, session: child.session};
        if (child.forwards) documents[id].forwards = true;
        if (child.syncs) documents[id].syncs = true;
      }
      return documents;
    }
    newState() {
      const state = tidy(this.root.state.toJSON());
      if (this.effects.sessions === 1) return state;
      // The state of an actor is in it once.
      if (state.event?.type === 'xstate.update') assign(state, {event: {type: 'xstate.update'}, _event: scxml({type: 'xstate.update'})});
      return {...state, children: this.children(this.root), sessions: this.effects.sessions};
    }
    document() {
      const all = [...this.actors.values()].filter(({parent}) => parent !== null);
      const live = all.filter(({isLive}) => isLive);
      return this.effects.document(
        (address) => live.some((actor) => actor.address === address),
        all.filter(({isLive}) => !isLive).map(({address}) => address),
        live.map(({address, state}) => ({actor: address, value: state.value}))
      );
    }
  }
  // Whether the one is the other, or is it with another context.
  function isSameMachine4(one, other) {
    if (one === other) return true;
    const hasSame = (part) => {
      const [mine, others] = [one.options[part] ?? {}, other.options[part] ?? {}];
      return keys(mine).length === keys(others).length && keys(mine).every((key) => mine[key] === others[key]);
    };
    return one.config === other.config && ['actions', 'guards', 'services', 'delays', 'activities'].every(hasSame);
  }
  function machineOf4(machine, src) {
    const found = machine.options.services?.[src] ?? knownByName(src)[0];
    if (isMachine4(found)) return found;
    throw invalid(`the state has an actor of ${src}, which the machine ${machine.id} does not have`);
  }
  // What XState 4 has in place of actors that nobody runs.
  const deferredIn = (context) => (isObject(context) ? keys(context).map((key) => context[key]).filter((one) => one?.deferred === true) : []);
  const isSpawning = (state) => state.actions.some(({type}) => type === 'xstate.start') || deferredIn(state.context).length > 0;
  function refuseDeferred(actor, context) {
    for (const {id} of deferredIn(context)) {
      throw invalid(`the machine ${actor.machine.id} spawns ${id}: with this version of XState 4 only invoked machines run`);
    }
  }

  class Machine4 {
    constructor(root) {
      this.root = root;
      mark4(root);
      // What the article's entry point throws away: toJSON() drops transitions and configuration.
      this.last = null;
      const transition = root.transition;
      root.transition = (...args) => (this.last = withoutHistory(transition(...args)));
    }
    check() {
      checkMachine4(this.root);
    }
    // An entry point steps the machine as the article does.
    checkEntryPoint({hasInitialState}) {
      if (hasInitialState && everyNode(this.root).some(({invoke}) => invoke.length > 0)) throw behindAnEntryPoint(this.root);
    }
    // What the machine works out once and keeps is in the image then, and not worked out in each step.
    warm() {
      for (const node of mark4(this.root).values()) for (const event of node.events) node.getCandidates(event);
      stackOf(this.root.constructor);
      const state = this.root.initialState;
      this.State = state.constructor;
      this.root.transition(state, {type: 'hangar.warm'});
    }
    start(input) {
      if (input !== undefined && !isObject(input)) throw invalid('the input is not an object');
      const context = this.root.context;
      const own = isObject(context) || context === undefined ? {...context, ...input} : context;
      this.root._init();
      const world = new World4(this, 1);
      world.begin(own);
      return this.document(world, true);
    }
    // `configuration` and `transitions` are not in JSON, and an event that nothing handles hands
    // on those of the state before.
    checkState(state) {
      checkState(state);
      activeNodes(this.root, state.value);
    }
    restorable(state) {
      this.checkState(state);
      const event = state._event ?? {name: 'xstate.init', data: state.event ?? {type: 'xstate.init'}, $$type: 'scxml', type: 'external'};
      return {...state, _event: event, configuration: [], transitions: []};
    }
    // The same as text, of `text`, which is the state's: what is missing is appended.
    restorableText(state, text) {
      const isPlain = isObject(state?._event) && !('configuration' in state) && !('transitions' in state) && text.endsWith('}');
      if (!isPlain) return stringify(this.restorable(state));
      this.checkState(state);
      return text.slice(0, -1) + ',"configuration":[],"transitions":[]}';
    }
    restored(state) {
      const restorable = this.restorable(state);
      const world = new World4(this, state.sessions ?? 1);
      world.restore(state, restorable);
      return world;
    }
    step(state, event) {
      const world = this.restored(state);
      const {actor, event: own} = world.addressee(event);
      if (state.done !== true && actor !== undefined && this.accepts(actor.machine, own)) world.whole(() => world.receive(actor, scxml(own)));
      return this.document(world, world.isHandled);
    }
    accepts(machine, event) {
      return !machine.strict || machine.events.includes(event.type);
    }
    document(world, isHandled) {
      const {state} = world.root;
      const newState = world.newState();
      return {newState, ...this.summary(state, isHandled, isHandled ? world.effects.actions : []), ...world.document()};
    }
    summary(state, isHandled, actions) {
      return {
        handled: isHandled,
        actions,
        value: state.value,
        final: state.done === true,
        output: state.done ? output4(this.root, state) : undefined,
      };
    }
    // What an entry point makes of a step of a machine with actors. It has stepped the machine alone: what it adds to that
    // is kept, and the host's own step is what counts.
    withActors(result, before, event) {
      const state = this.last;
      const same = (one) => stringify(tidy(parse(stringify(one))));
      if ('handled' in result || same(result.newState) !== same(state.toJSON())) throw behindAnEntryPoint(this.root);
      const isHosts = ({type}) => !String(type).startsWith('xstate.');
      const {actions} = this.refined(result, state);
      const own = state.actions.filter(isHosts).flatMap((action) => asked4(this.root, action, state));
      const document = this.step(before, event);
      return {...document, actions: [...document.actions, ...without(actions.filter(isHosts), own)]};
    }
    // The actions of `result` that belong to what was entered, and what else the host needs.
    refine(result, before, event) {
      const state = this.last;
      if (state === null) return result;
      const hasActors = keys(before.children ?? {}).length > 0 || isSpawning(state);
      if (hasActors) return this.withActors(result, before, event);
      return 'handled' in result ? result : this.refined(result, state);
    }
    refined(result, state) {
      const isHandled = state.transitions.length > 0 || state.changed === true;
      const entered = new Set(state.actions.filter(({type}) => type === enteredMark).map(({id}) => id));
      const staying = activeNodes(this.root, state.value).filter((node) => !entered.has(node.id));
      const actions = isHandled
        ? [
            ...without(result.actions ?? [], staying.flatMap((node) => metaActions(node, state.context, state.event))),
            ...state.actions.filter(({type}) => type.startsWith('xstate.')).flatMap((action) => asked4(this.root, action, state)),
          ]
        : [];
      return {newState: tidy(result.newState), ...this.summary(state, isHandled, actions)};
    }
    // Whether an error of the entry point is only XState's way of ignoring an event, which actors may know.
    ignored(state, event) {
      const document = this.step(state, event);
      return document.handled && document.newState.sessions === undefined ? null : document;
    }
    definition() {
      return definition4(this.root);
    }
    actors(state) {
      const world = this.restored(state);
      const below = [...world.actors.values()].filter(({parent}) => parent !== null);
      return below.map(({address, state: {value}, machine}) => ({actor: address, value, definition: definition4(machine)}));
    }
  }
  function definition4(machine) {
    machine._init();
    return drawing(machine, (node) =>
      node.transitions.map(({eventType, target, cond}) => {
        const after = node.after.find((delayed) => delayed.eventType === eventType);
        return {event: eventType, targets: target ?? [], guard: nameOfGuard(cond), delay: after?.delay};
      })
    );
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

  return {Machine4, isMachine4, isSameMachine4};
});
