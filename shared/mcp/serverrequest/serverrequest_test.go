package serverrequest

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestCarriedCapabilities(t *testing.T) {
	t.Parallel()
	for declared, want := range map[string]string{
		``: ``, `{}`: ``, `null`: ``, `[]`: ``, `{"tasks":{}}`: ``, `{"elicitation":null}`: ``, `{"roots":true}`: ``,
		`{"elicitation":{}}`:                                     `{"elicitation":{"form":{}}}`,
		`{"elicitation":{"url":{}}}`:                             `{"elicitation":{"url":{}}}`,
		`{"elicitation":{"form":{"a":1}},"extensions":1}`:        `{"elicitation":{"form":{}}}`,
		`{"roots":{"listChanged":true},"sampling":{"tools":{}}}`: `{"roots":{},"sampling":{"tools":{}}}`,
	} {
		if got := string(InputCapabilities(json.RawMessage(declared))); got != want {
			t.Errorf("%s: %s, want %s", declared, got, want)
		}
	}
}

func TestQuestionsNeedTheirCapability(t *testing.T) {
	t.Parallel()
	form := InputRequest{Method: Elicit, Params: json.RawMessage(`{"message":"m","requestedSchema":{}}`)}
	url := InputRequest{Method: Elicit, Params: json.RawMessage(`{"mode":"url","url":"https://a"}`)}
	sample, roots := InputRequest{Method: Sample}, InputRequest{Method: Roots}
	for capabilities, want := range map[string][]bool{
		``:                           {false, false, false, false},
		`{"elicitation":{}}`:         {true, false, false, false},
		`{"elicitation":{"url":{}}}`: {false, true, false, false},
		`{"sampling":{}}`:            {false, false, true, false},
		`{"roots":{}}`:               {false, false, false, true},
	} {
		var got []bool
		for _, q := range []InputRequest{form, url, sample, roots} {
			got = append(got, Allowed(InputCapabilities(json.RawMessage(capabilities)), q))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", capabilities, got, want)
		}
	}
}

func TestReadQuestions(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]bool{
		`{}`: true, `{"a":{"method":"roots/list"}}`: true, `{"a":{"method":"elicitation/create","params":{}}}`: true,
		``: false, `null`: false, `[]`: false, `{"a":{}}`: false, `{"a":{"method":"tools/call"}}`: false,
		`{"a":null}`: false, `{"a":{"method":"roots/list","params":[]}}`: false,
	} {
		if _, ok := Read(json.RawMessage(raw)); ok != want {
			t.Errorf("%s: %v", raw, ok)
		}
	}
}

func TestMissingResponses(t *testing.T) {
	t.Parallel()
	ids := map[string]json.RawMessage{"a": json.RawMessage("1"), "b": json.RawMessage("2")}
	if names, ok := Missing(ids, map[string]json.RawMessage{"b": json.RawMessage("{}"), "c": json.RawMessage("1")}); !ok || !slices.Equal(names, []string{"a"}) {
		t.Errorf("%v %v", names, ok)
	}
	if _, ok := Missing(ids, map[string]json.RawMessage{"a": json.RawMessage(`"text"`)}); ok {
		t.Error("a text was taken for a response")
	}
}
