// Command lua answers whether a resource of Kubernetes is ready, by a script that returns a function of the resource,
// as yoke's custom readiness has them. It runs as a guest, with the entry point of a state machine (entry_wasip1.go):
// every question finds it as it was after its start, so nothing of one script is left for the next.
//
// Scripts are hostile. The bounds of memory and time are the host's; what is bounded here is what should end as an
// error of Lua, with the line, and not as the end of the guest.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"
)

const (
	// A rule walks a resource, which is some ten levels deep.
	callsMax = 1000
	// Values on Lua's stack; 1 MiB.
	registryMax  = 64 * 1024
	registryStep = 4 * 1024
	// An error is shown in the status of an object.
	errorBytesMax = 1024
)

// rule is the machine's state.
type rule struct {
	Name   string `json:"name"` // Of the script, for errors.
	Script string `json:"script"`
}

type verdict struct {
	Ready bool   `json:"ready"`
	Error string `json:"error,omitempty"`
}

// A module is called by its exports. For other systems, where tests run, this is a program that does nothing.
func main() {}

// answer decides by a rule about a resource, both in JSON. Its result has the form of a state machine's answer: the
// new state is the verdict.
func answer(ruleText, resourceText []byte) []byte {
	var by rule
	var resource map[string]any
	var said verdict
	err := json.Unmarshal(ruleText, &by)
	if err == nil {
		err = json.Unmarshal(resourceText, &resource)
	}
	if err == nil {
		said.Ready, err = judge(by, resource)
	}
	if err != nil {
		said.Error = shortened(err.Error())
	}
	text, err := json.Marshal(map[string]verdict{"newState": said})
	if err != nil {
		panic(err)
	}
	return text
}

// judge has yoke's texts for what is wrong with a script.
func judge(by rule, resource map[string]any) (ready bool, err error) {
	// Of gopher-lua itself: Lua's errors are returned.
	defer func() {
		if panicked := recover(); panicked != nil {
			ready, err = false, fmt.Errorf("%s: %v", by.Name, panicked)
		}
	}()
	state := newState()
	defer state.Close()

	chunk, err := state.Load(strings.NewReader(by.Script), by.Name)
	if err != nil {
		return false, fmt.Errorf("failed to load lua script: %w", plain(err))
	}
	function, err := call(state, chunk)
	if err != nil {
		return false, fmt.Errorf("failed to execute lua script: %w", plain(err))
	}
	if !isCallable(state, function) {
		return false, fmt.Errorf("expected script to return a function but got: %s", function.Type())
	}
	result, err := call(state, function, valueOf(state, resource))
	if err != nil {
		return false, fmt.Errorf("failed to invoke lua readiness function: %w", plain(err))
	}
	switch result := result.(type) {
	case lua.LBool:
		return bool(result), nil
	case *lua.LNilType:
		return false, nil
	default:
		return false, fmt.Errorf("expected result to be a boolean but got: %s", result.Type())
	}
}

// newState has the libraries that reach nothing outside of the script: no io, os, debug, package or channel.
func newState() *lua.LState {
	state := lua.NewState(lua.Options{
		SkipOpenLibs:        true,
		CallStackSize:       callsMax,
		MinimizeStackMemory: true,
		RegistryMaxSize:     registryMax,
		RegistryGrowStep:    registryStep,
	})
	for name, open := range map[string]lua.LGFunction{
		lua.BaseLibName:      lua.OpenBase,
		lua.CoroutineLibName: lua.OpenCoroutine,
		lua.MathLibName:      lua.OpenMath,
		lua.StringLibName:    lua.OpenString,
		lua.TabLibName:       lua.OpenTable,
	} {
		state.Push(state.NewFunction(open))
		state.Push(lua.LString(name))
		state.Call(1, 0)
	}
	// They read files, or print on standard output, where the answer goes.
	for _, name := range []string{"dofile", "loadfile", "module", "require", "_printregs"} {
		state.SetGlobal(name, lua.LNil)
	}
	state.SetGlobal("print", state.NewFunction(func(*lua.LState) int { return 0 }))
	return state
}

// call returns the first result, nil if there is none.
func call(state *lua.LState, function lua.LValue, arguments ...lua.LValue) (lua.LValue, error) {
	if err := state.CallByParam(lua.P{Fn: function, NRet: 1, Protect: true}, arguments...); err != nil {
		return nil, err
	}
	result := state.Get(-1)
	state.Pop(1)
	return result, nil
}

func isCallable(state *lua.LState, value lua.LValue) bool {
	return value.Type() == lua.LTFunction || state.GetMetaField(value, "__call") != lua.LNil
}

// valueOf converts what encoding/json has decoded. Lists begin at 1; a null is no field.
func valueOf(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case bool:
		return lua.LBool(value)
	case float64:
		return lua.LNumber(value)
	case string:
		return lua.LString(value)
	case []any:
		list := state.CreateTable(len(value), 0)
		for index, one := range value {
			list.RawSetInt(index+1, valueOf(state, one))
		}
		return list
	case map[string]any:
		table := state.CreateTable(0, len(value))
		for key, one := range value {
			table.RawSetString(key, valueOf(state, one))
		}
		return table
	default:
		return lua.LNil
	}
}

// plain is the error without gopher-lua's backtrace.
func plain(err error) error {
	var failed *lua.ApiError
	if !errors.As(err, &failed) {
		return err
	}
	switch object := failed.Object.(type) {
	case lua.LString, lua.LNumber:
		return errors.New(strings.Join(strings.Fields(object.String()), " "))
	case nil:
		return errors.New(strings.Join(strings.Fields(err.Error()), " "))
	default:
		// As the interpreter of lua.org says it. A table's own text would be an address.
		return fmt.Errorf("(error object is a %s value)", object.Type())
	}
}

func shortened(text string) string {
	if len(text) <= errorBytesMax {
		return text
	}
	text = text[:errorBytesMax]
	for len(text) > 0 && !utf8.ValidString(text) {
		text = text[:len(text)-1]
	}
	return text + "..."
}
