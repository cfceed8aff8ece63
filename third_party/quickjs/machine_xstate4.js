// How machines of XState 4 are stepped without its interpreter.
//
// The whole is an expression: a function of what the prelude shares, which returns what it needs.
(function (shared) {
  'use strict';
  const {
    activeNodes, checkState, defineProperty, drawing, enteredMark, everyNode, invalid, isObject, keys, log,
    metaActions, nameOfGuard, stringify, without,
  } = shared;

  const isMachine4 = (value) => value?.__xstatenode === true && typeof value.getInitialState === 'function';

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

  return {Machine4, isMachine4};
});
