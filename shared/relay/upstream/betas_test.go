package upstream

import (
	"net/http"
	"reflect"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/provider"
)

func TestBetasOfTheClientJoinThoseOfTheSavedProvider(t *testing.T) {
	t.Parallel()
	anthropic, _ := provider.ByID("anthropic")
	for name, c := range map[string]struct{ client, set, want http.Header }{
		"none": {nil, http.Header{"Anthropic-Beta": {"a"}}, http.Header{"Anthropic-Beta": {"a"}}},
		"added, each once": {
			http.Header{"Anthropic-Beta": {"b, a", "c"}}, http.Header{"Anthropic-Beta": {"a , d"}},
			http.Header{"Anthropic-Beta": {"a,d,b,c"}},
		},
		"the gateway's own header goes first": {
			http.Header{"Anthropic-Beta": {"b"}, "X-Gateway-Anthropic-Beta": {"c"}}, http.Header{},
			http.Header{"Anthropic-Beta": {"c"}},
		},
		"the version that is set stands": {
			http.Header{"Anthropic-Version": {"2026-01-01"}}, http.Header{"Anthropic-Version": {"2023-06-01"}},
			http.Header{"Anthropic-Version": {"2023-06-01"}},
		},
		"the version of the client": {
			http.Header{"Anthropic-Version": {"2026-01-01"}}, http.Header{},
			http.Header{"Anthropic-Version": {"2026-01-01"}},
		},
		"a beta of another provider": {http.Header{"Openai-Beta": {"assistants=v2"}}, http.Header{}, http.Header{}},
	} {
		SetBetas(c.set, c.client, anthropic)
		if !reflect.DeepEqual(c.set, c.want) {
			t.Errorf("%s: %v, want %v", name, c.set, c.want)
		}
	}
	h := http.Header{}
	openAI, _ := provider.ByID("openai")
	SetBetas(h, http.Header{"Openai-Beta": {"a"}, "X-Gateway-Openai-Beta": {"b"}, "Anthropic-Beta": {"c"}}, openAI)
	if want := (http.Header{"Openai-Beta": {"b"}}); !reflect.DeepEqual(h, want) {
		t.Errorf("OpenAI gets %v, want %v", h, want)
	}
}

func TestHeadersOfAnthropicsOwnGoOn(t *testing.T) {
	t.Parallel()
	h := http.Header{"Anthropic-Set": {"by the provider"}}
	SetAnthropicBetas(h, http.Header{
		"Anthropic-New": {"1", "2"}, "Anthropic-Set": {"by the client"}, "Anthropic-Beta": {"b"}, "Anthropic-Version": {"v"},
		"Anthropic-Empty": nil, "X-Other": {"x"},
	})
	if want := (http.Header{"Anthropic-Set": {"by the provider"}, "Anthropic-New": {"1"}}); !reflect.DeepEqual(h, want) {
		t.Errorf("%v, want %v", h, want)
	}
}

func TestBetasThatATranslationHasNoPlaceForAreReported(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		dialect, family string
		client          http.Header
		betas, lost     []string
	}{
		"Anthropic's own shape":         {provider.AnthropicMessages, "anthropic", http.Header{"Anthropic-Beta": {"a"}}, []string{"set"}, nil},
		"a list for Anthropic's host":   {provider.Converse, "anthropic", http.Header{"Anthropic-Beta": {"a"}}, []string{"set"}, []string{"anthropic-beta"}},
		"named by the gateway's header": {provider.Converse, "anthropic", http.Header{"Anthropic-Beta": {"a"}, "X-Gateway-Anthropic-Beta": {"a"}}, []string{"set", "a"}, nil},
		"a model of another maker":      {provider.Converse, "meta", http.Header{"Anthropic-Beta": {"a"}, "X-Gateway-Anthropic-Beta": {"a"}}, []string{"set"}, []string{"anthropic-beta"}},
		"nothing asked for":             {"openai.chat", "", nil, []string{"set"}, nil},
	} {
		traits, loss := chat.Traits{Family: c.family, Betas: []string{"set"}}, chat.Loss{}
		CarryBetas(c.client, c.dialect, &traits, &loss)
		if !reflect.DeepEqual(traits.Betas, c.betas) || !reflect.DeepEqual(loss.Paths(), c.lost) {
			t.Errorf("%s: betas %v, lost %v; want %v, %v", name, traits.Betas, loss.Paths(), c.betas, c.lost)
		}
	}
}
