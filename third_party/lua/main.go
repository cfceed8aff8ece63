// Command lua answers whether a resource of Kubernetes is ready, by a script that returns a function of the resource,
// as yoke's custom readiness has them. It runs as a guest, once for each question: {"name", "script", "resource"} on
// standard input, {"ready"} or {"error"} on standard output.
//
// Scripts are hostile. The bounds of memory and time are the host's; what is bounded here is what should end as an
// error of Lua, with the line, and not as the end of the guest.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
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
	// Below the host's bound on memory (src/airways/limits.h), so that garbage is collected before that is reached.
	memorySoftMax = 48 << 20
	// An error is shown in the status of an object.
	errorBytesMax = 1024
)

type question struct {
	Name     string         `json:"name"` // Of the script, for errors.
	Script   string         `json:"script"`
	Resource map[string]any `json:"resource"`
}

type answer struct {
	Ready bool   `json:"ready"`
	Error string `json:"error,omitempty"`
}

func main() {
	debug.SetMemoryLimit(memorySoftMax)
	var asked question
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		fmt.Fprintln(os.Stderr, "the question:", err)
		os.Exit(1)
	}
	var said answer
	var err error
	if said.Ready, err = judge(asked); err != nil {
		said.Error = shortened(err.Error())
	}
	if err := json.NewEncoder(os.Stdout).Encode(said); err != nil {
		fmt.Fprintln(os.Stderr, "the answer:", err)
		os.Exit(1)
	}
}

// judge has yoke's texts for what is wrong with a script.
func judge(asked question) (ready bool, err error) {
	// Of gopher-lua itself: Lua's errors are returned.
	defer func() {
		if panicked := recover(); panicked != nil {
			ready, err = false, fmt.Errorf("%s: %v", asked.Name, panicked)
		}
	}()
	state := newState()
	defer state.Close()

	chunk, err := state.Load(strings.NewReader(asked.Script), asked.Name)
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
	result, err := call(state, function, valueOf(state, asked.Resource))
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
