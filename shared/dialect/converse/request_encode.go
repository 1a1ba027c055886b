package converse

import (
	"gateway/shared/chat"
	"gateway/shared/dialect/claude"
	"gateway/shared/dialect/upstream"
)

// Bounds of the provider.
const (
	maxToolName = 64
	maxToolID   = 64
)

const notTaken = upstream.UnsupportedField

// requestEncoder writes one request, with the messages after all other fields. Its steps are
// functions in the files of their topics.
type requestEncoder struct {
	upstream.Object
	r    *chat.Request
	t    *chat.Traits
	loss *chat.Loss
	skip int // cache markers that are omitted, from the front

	think     claude.Thinking
	maxTokens chat.Opt[int64]
	recalled  map[*chat.Part][]chat.Part

	format    claude.JSON
	flat      bool           // tool calls and results of the history are given as text
	documents map[string]int // names that were given to documents
	placed    []placedPrompt // system prompts within the conversation, in their order
}

func encodeRequest(dst []byte, r *chat.Request, t *chat.Traits, loss *chat.Loss) ([]byte, error) {
	e := &requestEncoder{Object: *upstream.Begin(dst), r: r, t: t, loss: loss}
	if err := r.Rename(maxToolName); err != nil {
		return dst, err
	}
	if err := reject(e); err != nil {
		return dst, err
	}
	if err := upstream.ReportLoss(r, loss, carried(e)...); err != nil {
		return dst, err
	}
	for _, plan := range []func(*requestEncoder) error{planThinking, planFormat, planTools, planMarkers, planSystem} {
		if err := plan(e); err != nil {
			return dst, err
		}
	}
	inference(e)
	if err := settings(e); err != nil {
		return dst, err
	}
	if err := additional(e); err != nil {
		return dst, err
	}
	for _, write := range []func(*requestEncoder) error{tools, encodeSystem, encodeMessages} {
		if err := write(e); err != nil {
			return dst, err
		}
	}
	e.Close('}')
	if err := loss.Err(); err != nil {
		return dst, err
	}
	return e.B, nil
}

// reject checks the bounds in which this provider is narrower than the specification.
func reject(e *requestEncoder) error {
	return claude.CheckLimits(e.r, e.t, 1)
}

// inference writes inferenceConfig.
func inference(e *requestEncoder) {
	r := e.r
	temperature, topP := r.Temperature, r.TopP
	drop := func(v *chat.Opt[float64], path, reason string) {
		if v.Set {
			v.Set = false
			e.loss.Add(path, reason)
		}
	}
	switch {
	case e.t.Sampling == chat.SamplingNone:
		drop(&temperature, "temperature", "not accepted by this model")
		drop(&topP, "top_p", "not accepted by this model")
	case e.think.On() && e.t.Family == familyAnthropic:
		if temperature.Value != 1 {
			drop(&temperature, "temperature", "not accepted with thinking")
		}
		if topP.Value < 0.95 {
			drop(&topP, "top_p", "not accepted with thinking")
		}
	}
	if e.t.Sampling == chat.SamplingEither && temperature.Set {
		drop(&topP, "top_p", "not accepted beside temperature")
	}
	if temperature.Set && temperature.Value > 1 {
		temperature.Value = 1
		e.loss.Add("temperature", "cut to 1")
	}
	stops := r.Stop
	if e.t.Family == familyAnthropic {
		stops = claude.Stops(r, e.loss)
	}
	if !e.maxTokens.Set && len(stops) == 0 && !temperature.Set && !topP.Set {
		return
	}
	e.Key("inferenceConfig")
	e.Open('{')
	e.IntIf("maxTokens", e.maxTokens)
	e.FloatIf("temperature", temperature)
	e.FloatIf("topP", topP)
	e.ListIf("stopSequences", stops)
	e.Close('}')
}

// planMarkers counts the cache markers; the provider accepts four, so the last ones are
// retained.
func planMarkers(e *requestEncoder) error {
	if e.t.NoCacheControl {
		return nil
	}
	e.skip = claude.Skipped(e.r, e.t.Family != familyAmazon)
	return nil
}

// cachePoint writes a cache point after the element that was marked; path names the
// element.
func cachePoint(e *requestEncoder, c chat.Cache, path func() string) {
	if c == chat.NoCache {
		return
	}
	if e.t.NoCacheControl {
		e.loss.Add(path()+".cache_control", "not accepted by this model")
		return
	}
	if e.skip > 0 {
		e.skip--
		e.loss.Add(path()+".cache_control", "more than 4 cache markers")
		return
	}
	e.Open('{')
	e.Key("cachePoint")
	e.Open('{')
	e.Str("type", "default")
	switch {
	case c == chat.Cache1h && e.t.NoLongCache:
		e.loss.Add(path()+".cache_control.ttl", "not accepted by this model")
	case c == chat.Cache1h:
		e.Str("ttl", "1h")
	case c == chat.Cache5m && !e.t.NoLongCache: // models without ttl know no other time
		e.Str("ttl", "5m")
	}
	e.B = append(e.B, "}}"...)
}

// lostMarker reports the cache marker of a text that is omitted.
func lostMarker(e *requestEncoder, c chat.Cache, path func() string) {
	if c == chat.NoCache {
		return
	}
	if e.skip > 0 {
		e.skip--
	}
	e.loss.Add(path()+".cache_control", "the text is blank")
}
