package observe

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"time"

	"gateway/shared/fault"
	"gateway/shared/observe/otlp"
	"gateway/shared/usage"
)

// attrs collects attributes. Its methods omit empty and zero values, except Add.
type attrs []otlp.Attr

func (a *attrs) add(key string, value any) { *a = append(*a, otlp.Attr{Key: key, Value: value}) }

func (a *attrs) text(key, value string) {
	if value != "" {
		a.add(key, value)
	}
}

func (a *attrs) count(key string, n int64) {
	if n != 0 {
		a.add(key, n)
	}
}

// spans are a record as a span, with its guardrails as spans below it. content may be nil.
func spans(r *usage.Record, latest bool, content *Content) []otlp.Span {
	end := r.Start.Add(r.Duration)
	s := otlp.Span{Trace: traceOf(r), ID: spanOf(r), Kind: otlp.KindClient, Start: r.Start, End: end, Status: otlp.StatusOK}
	if parent, ok := parse8(r.ParentSpanID); ok {
		s.Parent = parent
	}
	s.Name = operation(r.Endpoint)
	if m := cmp.Or(r.RequestModel, r.Model); m != "" {
		s.Name += " " + m
	}
	if r.Call != nil {
		s.Name, s.Kind, content = named(r), otlp.KindServer, nil
	}
	a := described(r, latest)
	if why := failure(r); why != "" {
		s.Status, s.Message = otlp.StatusError, fault.Clip(cmp.Or(r.ErrorMessage, why), maxStatusText)
	}
	content.describe(&a)
	if content != nil && content.finish != "" && failure(r) == "" {
		// The response says more than the record where its finish reason is only a status.
		for i := range a {
			if a[i].Key == attrFinishReasons {
				a[i].Value = []string{content.finish}
			}
		}
	}
	s.Attrs = a
	out := []otlp.Span{s}
	for i := range r.Guards {
		out = append(out, guardSpan(&s, r, i))
	}
	return out
}

// maxStatusText limits the text of a status, in bytes.
const maxStatusText = 1024

// common are the attributes that distinguish requests in metrics as well.
func common(r *usage.Record, latest bool) (a attrs) {
	if r.Call != nil {
		return ofCall(r)
	}
	a.add(attrOperation, operation(r.Endpoint))
	if name := providerName(r.Provider); name != "" {
		a.add(attrProvider, name)
		if !latest {
			a.add(attrSystem, name)
		}
	}
	a.text(attrRequestModel, r.RequestModel)
	if r.Success() || r.Usage.IsReported() { // otherwise Model is the requested one
		a.text(attrResponseModel, r.Model)
	}
	return a
}

// described are the attributes of a record's span.
func described(r *usage.Record, latest bool) attrs {
	a := common(r, latest)
	if r.Call != nil {
		a = detailed(a, r)
	}
	if reason := finish(r.FinishReason); reason != "" && failure(r) == "" {
		a.add(attrFinishReasons, []string{reason})
	}
	if n := len(r.Attempts); n > 0 && r.Call == nil {
		if address, port := r.Attempts[n-1].ServerAddress(); address != "" {
			a.add(attrServerAddress, address)
			a.add(attrServerPort, port)
		}
	}
	a.text(attrConversation, conversation(r))
	if r.Call == nil {
		a.text(attrUser, cmp.Or(r.EndUser, fromMetadata(r.Metadata, "user.id", "user_id", "userId")))
		a.text(attrOutputType, outputTypes[r.Endpoint])
	}
	if r.Stream && r.Call == nil {
		a.add(attrStream, true)
		if r.Success() {
			a.add(attrFirstChunk, r.TimeToFirstByte.Seconds())
		}
	}
	if u := r.Usage; u.TotalTokens() > 0 && r.Call == nil { // the tokens of calls are an estimate that is not billed
		a.add(attrInputTokens, u.InputTokens())
		a.add(attrOutputTokens, u.OutputTokens())
		a.count(attrCacheReadTokens, u.Cached())
		if latest {
			a.count(attrCacheWriteTokens, u.CacheWrites())
		} else {
			a.count(attrCacheMadeTokens, u.CacheWrites())
		}
		a.count(attrReasoningTokens, reasoning(r))
		if u.Estimated {
			a.add(attrEstimated, true)
		}
	}
	a.text(attrErrorType, failure(r))
	for _, own := range []struct{ key, value string }{
		{attrOrganisation, r.Org}, {attrWorkspace, r.Workspace}, {attrWorkspaceSlug, r.WorkspaceSlug}, {attrLog, r.ID}, {attrEndpoint, r.Endpoint}, {attrKey, r.KeyID},
		{attrConfig, r.ConfigSlug}, {attrProviderSlug, r.ProviderSlug}, {attrPrompt, r.PromptSlug}, {attrOption, r.OptionIndex}, {attrCache, r.CacheStatus},
		{attrError, r.ErrorCode}, {attrAgent, r.Agent.ID}, {attrParentAgent, r.Agent.Parent},
	} {
		if r.Call == nil || own.key != attrProviderSlug {
			a.text(own.key, own.value)
		}
	}
	a.count(attrRetries, int64(r.RetryCount))
	if r.Priced && r.Call == nil {
		a.add(attrCost, int64(r.Cost))
		a.add(attrCostUSD, float64(r.Cost)/1e9)
		a.add(attrUsageCost, float64(r.Cost)/1e9)
	}
	for _, k := range slices.Sorted(maps.Keys(r.Metadata)) {
		a.add(attrMetadataBefore+k, r.Metadata[k])
	}
	return a
}

// conversation is the session of a request: that of its headers, else that of its metadata.
func conversation(r *usage.Record) string {
	if r.Call != nil || r.Agent.Session != "" {
		return r.Agent.Session
	}
	return fromMetadata(r.Metadata, "session.id", "session_id", "sessionId", "conversation_id", "conversationId", "thread_id", "threadId")
}

// fromMetadata returns the first value that metadata has under one of several names.
func fromMetadata(metadata map[string]string, names ...string) string {
	for _, name := range names {
		if v := metadata[name]; v != "" {
			return v
		}
	}
	return ""
}

// outputTypes are the kinds of content that endpoints produce, where that is not text.
var outputTypes = map[string]string{"imageGenerate": "image", "imageEdit": "image", "imageVariation": "image", "createSpeech": "speech"}

// guardSpan is the span of a guardrail. When it began is not recorded, so a guardrail
// before the response is put at the start of the request, and one after it at its end.
func guardSpan(of *otlp.Span, r *usage.Record, n int) otlp.Span {
	g := &r.Guards[n]
	duration := min(time.Duration(g.LatencyMS)*time.Millisecond, of.End.Sub(of.Start))
	s := otlp.Span{Trace: of.Trace, ID: derived("guardrail", r.ID, strconv.Itoa(n)), Parent: of.ID, Name: "guardrail " + g.Hook, Kind: otlp.KindInternal, Status: otlp.StatusOK}
	if s.Start, s.End = of.Start, of.Start.Add(duration); g.Phase == usage.GuardAfter {
		s.Start, s.End = of.End.Add(-duration), of.End
	}
	action := "none"
	switch {
	case g.Denied:
		action = "deny"
	case g.Transformed:
		action = "transform"
	}
	var a attrs
	a.add(attrGuard, g.Hook)
	a.add(attrGuardPhase, g.Phase)
	a.add(attrGuardVerdict, g.Verdict)
	a.add(attrGuardAction, action)
	a.add(attrGuardDeny, g.Denied)
	a.add(attrGuardAsync, g.Async)
	s.Attrs = a
	for name, ids := range map[string][]string{eventCheckFailed: g.Failed, eventCheckErrored: g.Errored} {
		for _, id := range ids {
			s.Events = append(s.Events, otlp.Event{At: s.End, Name: name, Attrs: []otlp.Attr{{Key: attrGuardCheck, Value: id}}})
		}
	}
	slices.SortStableFunc(s.Events, func(x, y otlp.Event) int { return cmp.Compare(x.Name, y.Name) })
	return s
}

// traceOf is the trace of a record: its trace id if that has the W3C form, otherwise an id
// made from it, so that the requests of a trace stay together.
func traceOf(r *usage.Record) (id [16]byte) {
	if raw, err := hex.DecodeString(r.TraceID); err == nil && len(raw) == len(id) && [16]byte(raw) != id {
		return [16]byte(raw)
	}
	sum := sha256.Sum256([]byte("trace " + r.Org + " " + cmp.Or(r.TraceID, r.ID)))
	return [16]byte(sum[:])
}

// spanOf is the id of a record's span, found in the same way.
func spanOf(r *usage.Record) [8]byte {
	if id, ok := parse8(r.SpanID); ok {
		return id
	}
	return derived("span", r.Org, cmp.Or(r.SpanID, r.ID))
}

func parse8(s string) (id [8]byte, ok bool) {
	raw, err := hex.DecodeString(s)
	if err != nil || len(raw) != len(id) || [8]byte(raw) == id {
		return id, false
	}
	return [8]byte(raw), true
}

func derived(parts ...string) [8]byte {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	return [8]byte(h.Sum(nil))
}
