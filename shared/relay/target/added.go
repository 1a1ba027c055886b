package target

import (
	"hash/maphash"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/provider"
)

// A request to an OpenAI-compatible host may contain fields that its client did not write: usage
// in a stream, a key for the prompt cache, strict adherence to a schema. If a host rejects one
// of them, the request is retried without it, and the host is remembered with the model, so that
// the next request omits it. The same is done with a path that a host is assumed to have, see
// byNative.

// added are fields that the gateway adds to bodies.
type added uint8

const (
	addedStreamOptions added = 1 << iota
	addedCacheKey
	addedStrict
	addedBreakpoints // ends of prefixes, where the client marked them in another format
	addedSystemTurns // system prompts between the turns
	addedNative      // the client's own dialect, at a host with another
	ofThisRequest    // with addedNative: the rejection is of the request, not of the host
)

// addedWords are the names by which a rejection refers to them.
var addedWords = [...]struct {
	what added
	word string
}{{addedStreamOptions, "stream_options"}, {addedStreamOptions, "include_usage"}, {addedCacheKey, "prompt_cache_key"}, {addedStrict, "strict"},
	{addedBreakpoints, "prompt_cache_breakpoint"}, {addedSystemTurns, "role 'system'"}, {addedSystemTurns, `role "system"`}}

// adds returns the fields of the target's body that the client did not write.
func (tg *Target) adds() (a added) {
	if tg.Req.Route.Client == nil || tg.To.Dialect == nil {
		return 0
	}
	if tg.Stream && !tg.WantUsage && tg.To.RequestsUsage() {
		a |= addedStreamOptions
	}
	if tg.SameDialect() || tg.Decoded == nil {
		return a
	}
	switch tg.To.Dialect.Name() {
	case provider.Converse:
		if tg.To.Traits.SystemTurns {
			a |= addedSystemTurns
		}
	case provider.OpenAIChat, provider.OpenAIResponses:
		if tg.To.Traits.PromptCacheKey && chat.Fields(tg.Decoded.Extra).Find("prompt_cache_key") == nil {
			a |= addedCacheKey
		}
		if tg.To.Traits.Breakpoints && !tg.Decoded.Breakpoints {
			a |= addedBreakpoints
		}
		if tg.Decoded.Format.AssumedStrict && !tg.To.Traits.NoAssumedStrict {
			a |= addedStrict
		}
	}
	return a
}

// without removes fields from those added for a target.
func (a added) without(t *chat.Traits) {
	t.NoStreamUsage = t.NoStreamUsage || a&addedStreamOptions != 0
	t.PromptCacheKey = t.PromptCacheKey && a&addedCacheKey == 0
	t.Breakpoints = t.Breakpoints && a&addedBreakpoints == 0
	t.SystemTurns = t.SystemTurns && a&addedSystemTurns == 0
	t.NoAssumedStrict = t.NoAssumedStrict || a&addedStrict != 0
}

// RefusedAdded returns the added fields that a host's rejection names.
func (tg *Target) RefusedAdded(f *fault.Fault) (refused added) {
	if f == nil {
		return 0
	}
	if route := tg.To.refusedRoute(f); route != 0 {
		return route
	}
	told := chat.ProviderErrorOf(f)
	if tg.Req.Route.Client == nil || told == nil || told.Status != http.StatusBadRequest && told.Status != http.StatusUnprocessableEntity {
		return 0
	}
	ours := tg.adds() &^ tg.To.leaves
	for _, w := range addedWords {
		if ours&w.what != 0 && (strings.Contains(told.Param, w.word) || strings.Contains(told.Message, w.word)) {
			refused |= w.what
		}
	}
	return refused
}

// LeaveOut removes fields from those added for the target.
func (tg *Target) LeaveOut(refused added) {
	if refused&addedNative != 0 {
		tg.byOwn()
	}
	tg.To.leaves |= refused
	refused.without(&tg.To.Traits)
}

// LearnRefused remembers the fields that the target's host has rejected.
func (tg *Target) LearnRefused(refused added) {
	if refused = refused.lasting(); refused != 0 {
		tg.Means.plainer.learn(tg.To.hostModel(), refused, tg.Req.Now())
	}
}

// lasting returns the parts of a rejection that apply to other requests too.
func (a added) lasting() added {
	if a&ofThisRequest != 0 {
		a &^= addedNative | ofThisRequest
	}
	return a
}

// learned is how long a rejection is remembered. It expires, because hosts add support later,
// and because one account may have access to a feature that another lacks.
const learned = 10 * time.Minute

// hostModel returns the key under which rejections of added fields are remembered.
func (t *Choice) hostModel() hostModel {
	host, _ := t.Target.OwnHost()
	if host == "" {
		host = t.Region() // each region has its own host and models
	}
	return hostModel{t.Target.Provider.ID, host, t.Model}
}

type hostModel struct{ provider, host, model string }

// plainer remembers which fields hosts reject, by host and model. Its memory is limited: a new
// entry overwrites the one in its slot.
type plainer struct {
	used  atomic.Bool
	known [512]atomic.Pointer[plainerHost]
}

type plainerHost struct {
	of     hostModel
	leaves added
	until  time.Time
}

var plainerSeed = maphash.MakeSeed()

func (p *plainer) place(of hostModel) *atomic.Pointer[plainerHost] {
	return &p.known[maphash.Comparable(plainerSeed, of)%uint64(len(p.known))]
}

func (p *plainer) learn(of hostModel, refused added, now time.Time) {
	at := p.place(of)
	of = hostModel{strings.Clone(of.provider), strings.Clone(of.host), strings.Clone(of.model)}
	for {
		before := at.Load()
		next := &plainerHost{of, refused, now.Add(learned)}
		if before != nil && before.of == of && now.Before(before.until) {
			next.leaves |= before.leaves
		}
		if at.CompareAndSwap(before, next) {
			p.used.Store(true)
			return
		}
	}
}

// apply omits the fields that the host is known to reject.
func (p *plainer) apply(to *Target, now func() time.Time) {
	if !p.used.Load() {
		return
	}
	of := to.To.hostModel()
	if known := p.place(of).Load(); known != nil && known.of == of && now().Before(known.until) {
		to.To.leaves = known.leaves
		known.leaves.without(&to.To.Traits)
	}
}
