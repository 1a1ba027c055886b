package plane

import (
	"slices"
	"sort"
	"strings"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/provider"
)

// unserved are the operations that no dialect or translator serves, by provider; only
// pass-through reaches them. An operation that is served must leave the list.
var unserved = map[string]string{
	"vertex-ai":    "batches_create batches_get batches_cancel batches_list finetune_create finetune_list finetune_get finetune_cancel",
	"cohere":       "files_list files_get files_delete batches_create batches_get batches_cancel batches_list",
	"fireworks-ai": "files_list files_get files_delete finetune_create finetune_list finetune_get finetune_cancel",
}

func excused(id string, op provider.Operation) bool {
	return slices.Contains(strings.Fields(unserved[id]), string(op))
}

// TestEveryOperationOfTheCatalogueHasADialect goes through the whole catalog: each operation
// of each row has a dialect or a translator, or is in the shape in which clients ask.
func TestEveryOperationOfTheCatalogueHasADialect(t *testing.T) {
	known := map[string]bool{}
	for _, d := range Dialects() {
		if known[d.Name()] {
			t.Errorf("%s is registered twice", d.Name())
		}
		known[d.Name()] = true
	}
	if known[provider.OpenAI] {
		t.Errorf("%s is the shape that is passed on, not a dialect", provider.OpenAI)
	}
	carriers := map[string]chat.Translator{}
	for _, c := range Translators() {
		if carriers[c.Name()] != nil {
			t.Errorf("%s is registered twice", c.Name())
		}
		carriers[c.Name()] = c
	}
	jobs := map[string]bool{}
	for _, j := range Jobs() {
		if jobs[j.Name()] {
			t.Errorf("%s is registered twice", j.Name())
		}
		jobs[j.Name()] = true
	}
	pairs, left := 0, []string{}
	for _, p := range provider.All() {
		for _, r := range p.Routes {
			pairs++
			if jobs[p.DialectOf(r.Op)] && !provider.IsJobOperation(r.Op) {
				t.Errorf("%s of %s is carried by Jobs, which functions without routes of jobs do not link", r.Op, p.ID)
			}
			pair := p.ID + " " + string(r.Op)
			name := p.DialectOf(r.Op)
			supported := known[name] && conversation(r.Op) || carriers[name] != nil || jobs[name] || name == provider.OpenAI || name == provider.OpenAIResponses || byConversation(p, r.Op, known) || listed(r.Op) || carried(r.Op)
			switch {
			case supported && excused(p.ID, r.Op):
				t.Logf("%s is spoken: take it off the list", pair)
			case !supported && !excused(p.ID, r.Op):
				t.Errorf("%s: nothing speaks %q", pair, name)
			case !supported:
				left = append(left, pair+" ("+name+")")
			}
		}
	}
	for id, ops := range unserved {
		for _, op := range strings.Fields(ops) {
			if p, ok := provider.ByID(id); !ok || !p.Serves(provider.Operation(op)) {
				t.Errorf("%s %s is not in the catalog", id, op)
			}
		}
	}
	sort.Strings(left)
	t.Logf("%d of %d pairs are left to pass-through:\n%s", len(left), pairs, strings.Join(left, "\n"))
	if pairs < 150 {
		t.Fatalf("only %d pairs", pairs)
	}
}

// conversation reports whether an operation is one that dialects serve.
func conversation(op provider.Operation) bool {
	switch op {
	case provider.Chat, provider.Completions, provider.Messages, provider.ResponsesCreate:
		return true
	}
	return op.IsNative()
}

// listed reports whether a response is turned into the clients' shape by its members, in any
// dialect.
func listed(op provider.Operation) bool { return op == provider.ModelsList }

// carried reports whether the messages of op are passed on as they come, over a socket.
func carried(op provider.Operation) bool { return op == provider.GeminiLive }

// byConversation reports whether the provider's chat serves op, because the gateway does not
// speak the provider's own format for op.
func byConversation(p *provider.Provider, op provider.Operation, known map[string]bool) bool {
	return conversation(op) && op != provider.Chat && p.Serves(provider.Chat) && known[p.DialectOf(provider.Chat)]
}
