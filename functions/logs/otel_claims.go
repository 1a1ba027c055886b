package logs

import (
	"context"
	"encoding/hex"
	"hash/fnv"
	"time"

	"gateway/shared/admin/usagequery"
	"gateway/shared/observe/instrumentation"
	"gateway/shared/observe/otlp"
	"gateway/shared/observe/spandedup"
	"gateway/shared/store"
	"gateway/shared/usage/report"
)

// traces decides which spans are counted.
func (f *family) traces() *spandedup.Traces {
	return spandedup.New(f.Store, f.Ingest.Now, f.loggedCalls)
}

// spanOf is a span as far as charges depend on it.
func spanOf(t *otlp.ReceivedSpan, x *instrumentation.Reading) spandedup.Span {
	s := spandedup.Span{
		ID: idOf(t.ID), Parent: idOf(t.Parent), Claims: x.Kind != instrumentation.Other, Usage: &x.Usage, Priced: x.RequestedModel != "" || x.Model != "",
		Start: t.Start.UnixMilli(), End: t.End.UnixMilli(),
	}
	if x.ResponseID != "" {
		h := fnv.New64a()
		h.Write([]byte(x.ResponseID))
		s.Response = h.Sum64()
	}
	return s
}

// idOf is the id of a span in hexadecimal; zero for none.
func idOf(text string) (id spandedup.ID) {
	if b, err := hex.DecodeString(text); err == nil && len(b) == len(id) {
		return spandedup.ID(b)
	}
	return spandedup.ID{}
}

// Limits of looking for the gateway's own logs.
const (
	maxLogged = 1000        // in the traces of a request
	clockSkew = time.Minute // between the sender's clock and the gateway's
)

// loggedCalls returns the calls of models in traces that passed through the gateway, as
// spans that count in any case. They must be visible to the logs, which takes a second, on
// AWS up to a minute.
func (f *family) loggedCalls(ctx context.Context, sc store.Scope, traces []string, from, to time.Time) (map[string][]spandedup.Span, error) {
	page, err := f.Reader.Logs(ctx, sc, &report.LogQuery{
		Filter: report.Filter{From: from.Add(-clockSkew), To: to.Add(clockSkew), TraceIDs: traces}, Limit: maxLogged, NoTotal: true,
	})
	if err != nil {
		return nil, usagequery.Failed(err)
	}
	out := map[string][]spandedup.Span{}
	for i := range page.Records {
		r := &page.Records[i]
		parent := idOf(r.ParentSpanID)
		if parent == (spandedup.ID{}) || r.Reported || r.Call != nil {
			continue
		}
		id := idOf(r.SpanID)
		if id == (spandedup.ID{}) {
			h := fnv.New64a()
			h.Write([]byte(r.ID))
			id = spandedup.ID(h.Sum(nil))
		}
		out[r.TraceID] = append(out[r.TraceID], spandedup.Span{
			ID: id, Parent: parent, Claims: true, Logged: true, Start: r.Start.UnixMilli(), End: r.Start.Add(r.Duration).UnixMilli(),
		})
	}
	return out, nil
}
