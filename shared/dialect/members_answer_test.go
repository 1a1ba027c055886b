package dialect_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/dialect/golden"
	"gateway/shared/pricing"
)

// told is an answer to which a member is added.
func told() *chat.Response {
	return &chat.Response{
		ID: "a-1", Model: "m", Created: 1750000000,
		Choices: []chat.Choice{{Parts: []chat.Part{{Kind: chat.Text, Text: "hi"}}, Stop: chat.StopEnd}},
	}
}

// answers sets one member of an answer to what cannot be taken for its absence.
var answers = map[string]func(r *chat.Response){
	"Response.ID":                func(r *chat.Response) { r.ID = "a-2" },
	"Response.Model":             func(r *chat.Response) { r.Model = "m-2" },
	"Response.Created":           func(r *chat.Response) { r.Created++ },
	"Response.Choices":           func(r *chat.Response) { r.Choices = append(r.Choices, chat.Choice{Index: 1}) },
	"Response.Usage":             func(r *chat.Response) { r.Usage.Set(pricing.Output, 7) },
	"Response.ReportedTotal":     func(r *chat.Response) { r.ReportedTotal = 77 },
	"Response.Billed":            func(r *chat.Response) { r.Billed = new(pricing.Usage); r.Billed.Set(pricing.Output, 9) },
	"Response.SystemFingerprint": func(r *chat.Response) { r.SystemFingerprint = "fp" },
	"Response.ServiceTier":       func(r *chat.Response) { r.ServiceTier = "flex" },
	"Choice.Index":               func(r *chat.Response) { r.Choices[0].Index = 1 },
	"Choice.Parts": func(r *chat.Response) {
		r.Choices[0].Parts = append(r.Choices[0].Parts, chat.Part{Kind: chat.Text, Text: "ho"})
	},
	"Choice.Stop":         func(r *chat.Response) { r.Choices[0].Stop = chat.StopLength },
	"Choice.Native":       func(r *chat.Response) { r.Choices[0].Native = "done" },
	"Choice.StopSequence": func(r *chat.Response) { r.Choices[0].Stop, r.Choices[0].StopSequence = chat.StopSequence, "END" },
	"Choice.Logprobs": func(r *chat.Response) {
		r.Choices[0].Logprobs = json.RawMessage(`{"content":[{"token":"hi","logprob":-1,"bytes":null,"top_logprobs":[]}],"refusal":null}`)
	},
	"Choice.Extra": func(r *chat.Response) { r.Choices[0].Extra = []chat.Field{{Name: "x", Raw: json.RawMessage(`1`)}} },
}

// TestNoMemberOfAnAnswerIsDroppedUnknown walks the members of an answer: with each
// alone every client's body is another one, or the member is among those that the
// client's shape is known to have no place for.
func TestNoMemberOfAnAnswerIsDroppedUnknown(t *testing.T) {
	t.Parallel()
	walked := 0
	for _, of := range []reflect.Type{reflect.TypeFor[chat.Response](), reflect.TypeFor[chat.Choice]()} {
		for i := range of.NumField() {
			walked++
			member := of.Name() + "." + of.Field(i).Name
			set := answers[member]
			if set == nil {
				t.Errorf("%s is not tried", member)
				continue
			}
			for client, d := range golden.Clients {
				o := &chat.Options{ID: "gw-1", Created: 1, ProviderName: "p"}
				r := told()
				set(r)
				carried := !bytes.Equal(d.EncodeResponse(nil, told(), o), d.EncodeResponse(nil, r, o))
				if without := slices.Contains(strings.Fields(noPlace[client]), member); carried == without {
					t.Errorf("%s to %s: carried %v, known to have no place %v", member, client, carried, without)
				}
			}
		}
	}
	if walked != len(answers) {
		t.Errorf("%d members, %d are tried", walked, len(answers))
	}
}

// booksOnly are the members of which no client is told.
const booksOnly = "Response.ReportedTotal Response.Billed "

// noPlace are the members that a client's shape has no place for.
var noPlace = map[string]string{
	"openai":      booksOnly + "Choice.StopSequence",
	"completions": booksOnly + "Choice.StopSequence Choice.Logprobs Choice.Extra",
	"anthropic":   booksOnly + "Response.Created Response.Choices Response.SystemFingerprint Response.ServiceTier Choice.Index Choice.Native Choice.Logprobs Choice.Extra",
	"responses":   booksOnly + "Response.Choices Response.SystemFingerprint Choice.Index Choice.Native Choice.StopSequence Choice.Extra",
}
