package relay

import (
	"hash/maphash"
	"net/http"
	"strings"
	"sync/atomic"

	"gateway/shared/chat"
	"gateway/shared/provider"
)

// A request to a host of OpenAI's shape may hold members that its client did not
// write: that usage be told in a stream, a key for the prompt cache, that a schema
// be held to. A host that refuses one of them is asked once more without it, and is
// remembered with the model, so that the next request has none.

// added are members that the gateway adds to bodies.
type added uint8

const (
	addedStreamOptions added = 1 << iota
	addedCacheKey
	addedStrict
)

// addedWords are how a refusal names them.
var addedWords = [...]struct {
	what added
	word string
}{{addedStreamOptions, "stream_options"}, {addedStreamOptions, "include_usage"}, {addedCacheKey, "prompt_cache_key"}, {addedStrict, "strict"}}

// adds tells what the body for the target holds besides what the client wrote.
func (tg *target) adds() (a added) {
	if tg.Route.Client == nil || tg.to.dialect == nil {
		return 0
	}
	if tg.Stream && !tg.WantUsage && tg.to.asksUsage() {
		a |= addedStreamOptions
	}
	if tg.sameDialect() || tg.decoded == nil {
		return a
	}
	switch tg.to.dialect.Name() {
	case provider.OpenAIChat, provider.OpenAIResponses:
		if tg.to.traits.PromptCacheKey && chat.Fields(tg.decoded.Extra).Find("prompt_cache_key") == nil {
			a |= addedCacheKey
		}
		if tg.decoded.Format.AssumedStrict && !tg.to.traits.NoAssumedStrict {
			a |= addedStrict
		}
	}
	return a
}

// without takes members out of what is added for a target.
func (a added) without(t *chat.Traits) {
	t.NoStreamUsage = t.NoStreamUsage || a&addedStreamOptions != 0
	t.PromptCacheKey = t.PromptCacheKey && a&addedCacheKey == 0
	t.NoAssumedStrict = t.NoAssumedStrict || a&addedStrict != 0
}

// refusedAdded tells which added members a host's refusal names.
func (x *exchanges) refusedAdded(a *answer) (refused added) {
	if a.fault == nil || x.bodySpent || x.Route.Client == nil || a.refused() {
		return 0
	}
	told := chat.ProviderErrorOf(a.fault)
	if told == nil || told.Status != http.StatusBadRequest && told.Status != http.StatusUnprocessableEntity {
		return 0
	}
	ours := x.adds()
	for _, w := range addedWords {
		if ours&w.what != 0 && (strings.Contains(told.Param, w.word) || strings.Contains(told.Message, w.word)) {
			refused |= w.what
		}
	}
	return refused
}

// askAgain asks a host that refused what was added once more, without it. ok is
// false when there is nothing to leave out.
func (x *exchanges) askAgain(a *answer) (again answer, body []byte, ok bool) {
	refused := x.refusedAdded(a)
	if refused == 0 {
		return *a, nil, false
	}
	refused.without(&x.to.traits)
	body, err := x.upstreamBody()
	if err != nil {
		return *a, nil, false
	}
	a.drop()
	again = x.attempt(body)
	if again.fault == nil || x.headSent {
		x.plainer.learn(x.hostModel(), refused)
	}
	return again, body, true
}

// hostModel names the target that may refuse what is added.
func (tg *target) hostModel() hostModel {
	host, _ := tg.to.target.OwnHost()
	return hostModel{tg.to.target.Provider.ID, host, tg.to.model}
}

type hostModel struct{ provider, host, model string }

// plainer remembers what hosts refuse, by host and model. Its memory is bounded: a
// place is taken by whoever comes last.
type plainer struct {
	used  atomic.Bool
	known [512]atomic.Pointer[plainerHost]
}

type plainerHost struct {
	of     hostModel
	leaves added
}

var plainerSeed = maphash.MakeSeed()

func (p *plainer) place(of hostModel) *atomic.Pointer[plainerHost] {
	return &p.known[maphash.Comparable(plainerSeed, of)%uint64(len(p.known))]
}

func (p *plainer) learn(of hostModel, refused added) {
	at := p.place(of)
	of = hostModel{strings.Clone(of.provider), strings.Clone(of.host), strings.Clone(of.model)}
	for {
		before := at.Load()
		next := &plainerHost{of, refused}
		if before != nil && before.of == of {
			next.leaves |= before.leaves
		}
		if at.CompareAndSwap(before, next) {
			p.used.Store(true)
			return
		}
	}
}

// apply leaves out what the host is known to refuse.
func (p *plainer) apply(to *target) {
	if !p.used.Load() {
		return
	}
	of := to.hostModel()
	if known := p.place(of).Load(); known != nil && known.of == of {
		known.leaves.without(&to.to.traits)
	}
}
