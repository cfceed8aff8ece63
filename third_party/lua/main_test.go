package main

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

const widget = `{
	"kind": "Widget", "metadata": {"name": "it", "generation": 3}, "spec": {"replicas": 2, "paused": false, "none": null},
	"status": {"ready": true, "replicas": 2, "conditions": [
		{"type": "Baked", "status": "True"}, {"type": "Cooled", "status": "False"}]}
}`

func ask(t *testing.T, script string) (bool, error) {
	t.Helper()
	var resource map[string]any
	if err := json.Unmarshal([]byte(widget), &resource); err != nil {
		t.Fatal(err)
	}
	return judge(rule{Name: "Widget.rules.dev", Script: script}, resource)
}

func body(text string) string { return "return function(resource)\n" + text + "\nend" }

func TestAnswersAsTheScriptSays(t *testing.T) {
	for _, one := range []struct {
		script string
		ready  bool
	}{
		{body("return true"), true},
		{body("return false"), false},
		{body("return nil"), false},
		{body(""), false},
		{body("return true, 'more'"), true},
		{body("return resource.status.ready"), true},
		{body("return resource.spec.paused"), false},
		{body("return resource.status.replicas == resource.spec.replicas"), true},
		{body("return resource.metadata.generation .. '' == '3'"), true},
		{body("return resource.spec.none == nil and resource.kind == 'Widget'"), true},
		{body("return #resource.status.conditions == 2 and resource.status.conditions[1].type == 'Baked'"), true},
		{body("for _, one in ipairs(resource.status.conditions) do if one.status ~= 'True' then return false end end return true"), false},
		{body("local seen = 0 for _ in pairs(resource) do seen = seen + 1 end return seen == 4"), true},
		{body("return resource.kind:lower():match('^wid') ~= nil and string.format('%d', 3) == '3'"), true},
		{body("return math.max(1, 2) == 2 and table.concat({'a', 'b'}) == 'ab'"), true},
		{body("local next = coroutine.wrap(function() coroutine.yield(true) end) return next()"), true},
		{body("return not pcall(error, 'x')"), true},
		{body("print('unseen') return true"), true},
		{"local function ready(it) return it.status.ready end\nreturn ready", true},
		{"return setmetatable({}, {__call = function(self, it) return it.status.ready end})", true},
	} {
		ready, err := ask(t, one.script)
		if err != nil || ready != one.ready {
			t.Errorf("%s: %v, %v", one.script, ready, err)
		}
	}
}

func TestSaysWhatIsWrongWithAScript(t *testing.T) {
	for _, one := range []struct{ script, text string }{
		{"return function(", "failed to load lua script: Widget.rules.dev"},
		{"x = = 1", "line:1"},
		{"error('early')", "failed to execute lua script: Widget.rules.dev:1: early"},
		{"", "expected script to return a function but got: nil"},
		{"return 7", "expected script to return a function but got: number"},
		{body("\nreturn resource.absent.ready"), "failed to invoke lua readiness function: Widget.rules.dev:3: attempt to index"},
		{body("error('late')"), "failed to invoke lua readiness function: Widget.rules.dev:2: late"},
		{body("error({})"), "(error object is a table value)"},
		{body("error()"), "failed to invoke lua readiness function: "},
		{body("return 'true'"), "expected result to be a boolean but got: string"},
		{body("return 1"), "expected result to be a boolean but got: number"},
		{body("return {}"), "expected result to be a boolean but got: table"},
		{body("local function again() return 1 + again() end return again()"), "stack overflow"},
		{body("return select('#', unpack({}, 1, 1e7)) > 0"), "registry overflow"},
	} {
		ready, err := ask(t, one.script)
		if ready || err == nil || !strings.Contains(err.Error(), one.text) || strings.Contains(err.Error(), "\n") ||
			strings.Contains(err.Error(), "traceback") {
			t.Errorf("%s: %v, %v", one.script, ready, err)
		}
	}
}

func TestReachesNothingOutsideOfTheScript(t *testing.T) {
	for _, name := range []string{"io", "os", "debug", "package", "channel", "require", "module", "dofile", "loadfile", "_printregs"} {
		if ready, err := ask(t, body("return "+name+" == nil")); err != nil || !ready {
			t.Errorf("%s: %v, %v", name, ready, err)
		}
	}
}

func TestKeepsNothingOfAnotherQuestion(t *testing.T) {
	if _, err := ask(t, "kept = 1\nstring.kept = 1\n"+body("resource.kept = 1 return true")); err != nil {
		t.Fatal(err)
	}
	if ready, err := ask(t, body("return kept == nil and string.kept == nil and resource.kept == nil")); err != nil || !ready {
		t.Errorf("%v, %v", ready, err)
	}
}

func TestShortensErrors(t *testing.T) {
	if text := shortened(strings.Repeat("é", errorBytesMax)); len(text) > errorBytesMax+3 || !utf8.ValidString(text) || !strings.HasSuffix(text, "é...") {
		t.Errorf("%q", text)
	}
	if text := shortened("short"); text != "short" {
		t.Errorf("%q", text)
	}
}

func TestAnswersAsAStateMachine(t *testing.T) {
	for _, one := range []struct{ rule, resource, text string }{
		{`{"name": "it", "script": "return function(it) return it.kind == 'Widget' end"}`, widget, `{"newState":{"ready":true}}`},
		{`{"name": "it", "script": "return function(it) return it.kind end"}`, widget,
			`{"newState":{"ready":false,"error":"expected result to be a boolean but got: string"}}`},
		{`{"name": "it", "script": "return"`, widget, `{"newState":{"ready":false,"error":"unexpected end of JSON input"}}`},
		{`{"name": "it", "script": "return function() end"}`, `[]`,
			`{"newState":{"ready":false,"error":"json: cannot unmarshal array into Go value of type map[string]interface {}"}}`},
	} {
		if text := string(answer([]byte(one.rule), []byte(one.resource))); text != one.text {
			t.Errorf("%s: %s", one.rule, text)
		}
	}
}
