package relay

import (
	"encoding/json"

	"gateway/shared/chat"
	"gateway/shared/dialect/job"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/relay/chosen"
	"gateway/shared/relay/kept"
	"gateway/shared/relay/tail"
)

// usedRaw is what a passed-through answer is charged. told: nothing is to be
// estimated. A run of a thread is made by the provider in its own time; it is
// charged with the answer that first tells of its usage, which may be a read.
func (me *meters) usedRaw(m *tail.Meter, got chat.Meter) (u pricing.Usage, told bool) {
	if me.KeptPath().Collection == "threads" {
		return me.usedByRun(lastRun(m)), true
	}
	if at := me.KeptPath(); at.Collection == "responses" && at.ID != "" {
		if m.Stream {
			return me.usedByStream(m.WholeEvents()), true
		}
		return me.usedByResponse(m.Kept), true
	}
	if me.makesLater() {
		return me.UsedLater(got), true
	}
	if me.CostsNothing() {
		return u, true
	}
	return got.Usage, got.Usage.Known()
}

// usedByRun is the usage of a run that no answer has told before.
func (me *meters) usedByRun(run []byte) (u pricing.Usage) {
	id := kept.RunID(run)
	if id == "" || me.rawDialect() == nil {
		return u
	}
	got := me.rawDialect().MeterResponse(run)
	if !got.Usage.Known() || !me.ClaimBooking(id) {
		return u
	}
	me.heard.asPriced(got)
	return got.Usage
}

// lastRun is the last run object that the answer tells of; nil when there is none.
func lastRun(m *tail.Meter) []byte {
	if !m.Stream {
		return kept.RunIn(m.Kept)
	}
	var last []byte
	tail.EachEvent(m.WholeEvents(), func(data []byte) {
		if run := kept.RunIn(data); run != nil {
			last = append(last[:0], run...)
		}
	})
	return last
}

// settleBatch books the usage of a finished batch with the request that first
// sees it. The rows of a batch run at the provider, long after it was created,
// so its cost comes to no request of their own.
func (s *sender) settleBatch(answer []byte) {
	if s.Route.Operation != provider.BatchesGet && s.Route.Operation != provider.BatchesOutput || s.To.Saved == nil || s.errorDialect() == nil {
		return
	}
	b, ok := kept.EndedBatch(answer)
	switch {
	case !ok:
		return
	case !b.Tells && s.To.Jobs != nil:
		s.jobUsage(b.ID)
		return
	case !b.Tells:
		s.rowsUsage(b.ID, answer)
		return
	}
	if !b.Known || !s.ClaimBooking(b.ID) {
		return
	}
	if b.Model != "" {
		s.heard.model, s.heard.priced = b.Model, b.Model
	}
	s.heard.mode = "batch"
	s.charge(b.Usage)
	s.spend()
}

// rowsUsage books what the rows of an ended batch used, where a host that speaks
// OpenAI's shape does not tell it with the batch: the output is read once. It is
// read before it is claimed, so that a reading that fails is done again by the next
// request.
func (s *sender) rowsUsage(id string, batch []byte) {
	var b batchState
	if json.Unmarshal(batch, &b) != nil || b.Output == "" {
		return
	}
	if claimed, err := s.BatchClaimed(id); claimed || err != nil {
		s.Fail("look for a batch's claim", err)
		return
	}
	resp, err := s.again(chosen.Part{Op: provider.FilesContent, ID: b.Output, Query: s.Req.URL.RawQuery})
	if err != nil {
		s.Fail("usage of a batch", err)
		return
	}
	used, err := job.RowsUsage(resp.Body)
	if err != nil {
		s.Fail("usage of a batch", err)
		return
	}
	if s.ClaimBooking(id) {
		s.bookRows(used)
	}
}

// jobUsage books what the rows of an ended batch used, when its provider tells it
// with the rows only. It is read before it is claimed, so that a reading that
// fails is done again by the next request.
func (jc *jobCalls) jobUsage(id string) {
	if claimed, err := jc.BatchClaimed(id); claimed || err != nil {
		jc.Fail("look for a batch's claim", err)
		return
	}
	j, err := jc.job(nil, jc.purse.Last())
	if err != nil {
		jc.Fail("usage of a batch", err)
		return
	}
	j.Operation, j.ID = string(provider.BatchesOutput), id
	used, err := jc.To.Jobs.Usage(jc.Ctx, j)
	if err != nil {
		jc.Fail("usage of a batch", err)
		return
	}
	if len(used) > 0 && jc.ClaimBooking(id) {
		jc.bookRows(used)
	}
}

// bookRows books what the rows of a batch used, one entry for each model.
func (me *meters) bookRows(used []chat.Meter) {
	if len(used) == 0 {
		return
	}
	me.heard.mode = "batch"
	for _, m := range used {
		me.heard.asPriced(m)
		me.charge(m.Usage)
	}
	me.spend()
}
