package relay

import (
	"bytes"
	"net/http"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/wire"
)

// costsNothing tells whether what is passed through to things that a provider
// keeps cannot cost anything: it was charged when it was made, or never is. Then no
// budget asks for its price.
func (tg *target) costsNothing() bool {
	if tg.rt.Shape != Raw {
		return false
	}
	s := tg.keptPath()
	if s.collection == "" || s.collection == "models" || s.evasive {
		return false
	}
	if tg.req.Method == http.MethodGet || tg.req.Method == http.MethodDelete {
		return true
	}
	switch s.collection {
	case "assistants", "vector_stores", "files", "uploads", "skills", "webhook_endpoints":
		return true
	case "jobs":
		return s.below // they are paused and resumed
	case "conversations": // where there are responses a conversation only keeps what is said in them
		return tg.to.target.Provider != nil && tg.to.target.Provider.Serves(provider.ResponsesCreate)
	case "evals":
		return !runs(tg.rawPath())
	case "chat/completions":
		return s.id != "" && !s.below
	case "responses":
		return s.id != "" || strings.HasSuffix(tg.rawPath(), "/input_tokens")
	case "threads":
		return !runs(tg.rawPath())
	}
	return false
}

// runs tells whether a POST of a path has the provider run a thread or an
// evaluation.
func runs(path string) bool {
	i := strings.Index(strings.ToLower(path), "/runs")
	if i < 0 {
		return false
	}
	run, do, _ := strings.Cut(strings.TrimPrefix(path[i+len("/runs"):], "/"), "/")
	return run == "" || do != "" && do != "cancel"
}

// usedRaw is what a passed-through answer is charged. told: nothing is to be
// estimated. A run of a thread is made by the provider in its own time; it is
// charged with the answer that first tells of its usage, which may be a read.
func (me *meters) usedRaw(m *tailMeter, got chat.Meter) (u pricing.Usage, told bool) {
	if me.keptPath().collection == "threads" {
		return me.usedByRun(m.lastRun()), true
	}
	if at := me.keptPath(); at.collection == "responses" && at.id != "" {
		if m.stream {
			return me.usedByStream(m.wholeEvents()), true
		}
		return me.usedByResponse(m.tail), true
	}
	if me.makesLater() {
		return me.usedLater(got), true
	}
	if me.costsNothing() {
		return u, true
	}
	return got.Usage, got.Usage.Known()
}

var runKeys = wire.NewKeySet("object", "id")

// usedByRun is the usage of a run that no answer has told before.
func (me *meters) usedByRun(run []byte) (u pricing.Usage) {
	var w wire.Walk
	if len(run) == 0 || runKeys.Walk(run, &w) != nil || !w.Spans[1].Present(run) || me.rawDialect() == nil {
		return u
	}
	id, err := wire.ScanString(w.Spans[1].Of(run), "id")
	got := me.rawDialect().MeterResponse(run)
	if err != nil || id == "" || len(id) > maxID || !got.Usage.Known() || !me.claimBooking(id) {
		return u
	}
	if got.Model != "" {
		me.rec.Model, me.to.model = got.Model, got.Model
	}
	return got.Usage
}

var runObject = []byte("thread.run")

// lastRun is the last run object that the answer tells of; nil when there is none.
func (m *tailMeter) lastRun() []byte {
	if !m.stream {
		return runIn(m.tail)
	}
	var last []byte
	eachEvent(m.wholeEvents(), func(data []byte) {
		if run := runIn(data); run != nil {
			last = append(last[:0], run...)
		}
	})
	return last
}

// runIn gives data if it is a run.
func runIn(data []byte) []byte {
	var w wire.Walk
	if !bytes.Contains(data, runObject) || runKeys.Walk(data, &w) != nil || !w.Spans[0].Present(data) {
		return nil
	}
	if object, err := wire.ScanString(w.Spans[0].Of(data), "object"); err != nil || object != "thread.run" {
		return nil
	}
	return data
}

var storeKey = []byte(`"store"`)

// storesChat tells whether the body has the provider keep a chat completion.
func (o *ownerWall) storesChat() bool {
	if o.to.saved == nil || !o.to.wall.on {
		return false // whose it is need not be known
	}
	body := o.in
	if o.to.body != nil {
		body = o.to.body
	}
	if !bytes.Contains(body, storeKey) {
		return false
	}
	var w wire.Walk
	if chatStore.Walk(body, &w) != nil || !w.Spans[0].Present(body) {
		return false
	}
	yes, err := wire.ScanBool(w.Spans[0].Of(body), "store")
	return err == nil && yes
}

var chatStore = wire.NewKeySet("store")

// makes tells whether the request has the provider make something that it keeps.
func (o *ownerWall) makes() bool {
	if o.req.Method != http.MethodPost {
		return false
	}
	s := o.keptPath()
	return s.creates() || s.collection == "chat/completions" && s.id == "" && o.storesChat()
}
