package observe

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"gateway/shared/observe/otlp"
	"gateway/shared/pricing"
)

// Seen is what another sender's span or log record tells about a request, by the older or
// the newer names; if it has both, the newer ones count.
type Seen struct {
	Endpoint            string // type of request; "": it calls no model
	Provider            string // the gateway's name for it, if there is one
	Asked, Model        string // the model that was asked for, and the model that answered
	Finish              string
	Usage               pricing.Usage // only for requests that call a model
	Session, Agent      string
	User                string
	URL                 string
	Status              int
	Stream              bool
	FirstByte           time.Duration // 0: not given
	Request, Answer     []byte        // JSON
	Metadata            map[string]string
	LoggedHere          bool // a log that the gateway itself has made
	operation, response string
}

// See reads it. Attributes without a field of their own become attributes of the request,
// so that nothing is lost.
func See(t *otlp.Told) *Seen {
	a := sight{of: maps.Clone(t.Attrs)}
	if a.of == nil {
		a.of = map[string]any{}
	}
	a.events(t.Events)
	s := &Seen{
		operation: a.text(attrOperation), response: a.text(attrResponseID), Asked: a.text(attrRequestModel), Model: a.text(attrResponseModel),
		Session: a.text(attrConversation), Agent: cmp.Or(a.text(attrAgentID), a.text(attrAgent)), URL: a.text(attrURL), Stream: a.truth(attrStream),
	}
	system := a.text(attrSystem)
	s.Provider = providerCalled(cmp.Or(a.text(attrProvider), system))
	s.Session = cmp.Or(s.Session, a.text(attrSession))
	s.FirstByte = time.Duration(a.real(attrFirstChunk) * float64(time.Second))
	s.Finish = a.first(attrFinishReasons)
	s.LoggedHere = a.text(attrLog) != ""
	s.kind()
	s.usage(&a)
	s.status(&a, t)
	s.metadata(&a, t.Origin)
	s.bodies(&a, t)
	return s
}

// kind gives the gateway's name for the operation. A span without an operation that names a
// model calls that model.
func (s *Seen) kind() {
	s.Endpoint = inferring[s.operation]
	if s.operation == "" && (s.Asked != "" || s.Model != "") {
		s.Endpoint = inferring["chat"]
	}
}

// usage splits the counts: those of the conventions include cached and reasoning tokens,
// the gateway's classes do not.
func (s *Seen) usage(a *sight) {
	in, knowsIn := a.either(attrInputTokens, attrInputBefore)
	out, knowsOut := a.either(attrOutputTokens, attrOutputBefore)
	read, _ := a.either(attrCacheReadTokens, attrCacheReadBefore)
	made, _ := a.either(attrCacheMadeTokens, attrCacheMadeBefore)
	wrote, known := a.either(attrCacheWriteTokens, "")
	if !known {
		wrote = made
	}
	thought, _ := a.either(attrReasoningTokens, attrReasoningBefore)
	audioIn, _ := a.either(attrAudioInput, "")
	imageIn, _ := a.either(attrImageInput, "")
	audioOut, _ := a.either(attrAudioOutput, "")
	imageOut, _ := a.either(attrImageOutput, "")
	a.either(attrTextInput, "") // the rest is text
	if s.Endpoint == "" || !knowsIn && !knowsOut {
		return
	}
	set := func(c pricing.Class, n int64) {
		if n > 0 {
			s.Usage.Set(c, n)
		}
	}
	s.Usage.Set(pricing.Input, max(in-read-wrote-audioIn-imageIn, 0))
	s.Usage.Set(pricing.Output, max(out-thought-audioOut-imageOut, 0))
	set(pricing.CacheRead, read)
	set(pricing.CacheWrite5m, wrote)
	set(pricing.Reasoning, thought)
	set(pricing.AudioIn, audioIn)
	set(pricing.ImageIn, imageIn)
	set(pricing.AudioOut, audioOut)
	set(pricing.ImageOut, imageOut)
	s.Usage = s.Usage.Bounded()
}

// status is the HTTP status. Spans have it as such, as the type of the error, or not at
// all.
func (s *Seen) status(a *sight, t *otlp.Told) {
	code, _ := a.either(attrHTTPStatus, "")
	kind := a.text(attrErrorType)
	if n, err := strconv.Atoi(kind); err == nil && code == 0 {
		code = int64(n)
	}
	if n, err := strconv.Atoi(t.Message); err == nil && code == 0 && t.Status == otlp.StatusError {
		code = int64(n)
	}
	switch failed := t.Status == otlp.StatusError || kind != ""; {
	case code >= 100 && code <= 599 && (failed || code >= 200 && code <= 299):
		s.Status = int(code)
	case failed:
		s.Status = 500
	default:
		s.Status = 200
	}
}

// Bounds of metadata, which are those of requests.
const (
	maxMetadata      = 64
	maxMetadataValue = 255
)

// metadata is what the sender gave under the gateway's own prefix, the user of the request,
// and the service that sent it.
func (s *Seen) metadata(a *sight, origin map[string]any) {
	s.Metadata = map[string]string{}
	set := func(name, value string) {
		if name != "" && value != "" && len(value) <= maxMetadataValue && len(name) <= maxMetadataValue && len(s.Metadata) < maxMetadata {
			s.Metadata[name] = value
		}
	}
	for _, key := range slices.Sorted(maps.Keys(a.of)) {
		if name, ok := strings.CutPrefix(key, attrMetadataBefore); ok {
			set(name, a.text(key))
		}
	}
	for _, name := range users {
		s.User = cmp.Or(s.User, a.text(name))
	}
	if s.User = cmp.Or(s.Metadata["_user"], s.User); s.User != "" {
		set("_user", s.User)
	}
	if name, ok := origin["service.name"].(string); ok {
		set("service.name", name)
	}
}

// bodies are the content, as far as it was given, and everything else that was given.
func (s *Seen) bodies(a *sight, t *otlp.Told) {
	asked := map[string]any{}
	put := func(in map[string]any, name string, v any) {
		if v != nil && v != "" {
			in[name] = v
		}
	}
	put(asked, "model", s.Asked)
	put(asked, "messages", a.json(attrInputMessages))
	if asked["messages"] == nil {
		put(asked, "messages", a.flat(attrPromptsBefore))
	}
	put(asked, "system", a.json(attrInstructions))
	put(asked, "tools", a.json(attrTools))
	answer := map[string]any{}
	put(answer, "id", s.response)
	put(answer, "model", s.Model)
	put(answer, "messages", a.json(attrOutputMessages))
	if answer["messages"] == nil {
		put(answer, "messages", a.flat(attrAnswersBefore))
	}
	put(answer, "error", t.Message)
	put(answer, "body", t.Body)
	if len(a.of) > 0 {
		asked["attributes"] = a.of
	}
	s.Request, s.Answer = marshal(asked), marshal(answer)
}

func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return []byte(fmt.Sprintf("%q", err.Error())) // JSON has no such numbers
	}
	return b
}

// sight takes attributes out of those that are not read yet.
type sight struct{ of map[string]any }

// events adds the attributes of events about content: the conventions put content there,
// too.
func (a *sight) events(all []otlp.ToldEvent) {
	for _, e := range all {
		for _, name := range []string{attrInputMessages, attrOutputMessages, attrInstructions, attrTools} {
			if v, ok := e.Attrs[name]; ok && a.of[name] == nil {
				a.of[name] = v
			}
		}
	}
}

func (a *sight) take(name string) any {
	v := a.of[name]
	delete(a.of, name)
	return v
}

func (a *sight) text(name string) string {
	switch v := a.take(name).(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return ""
}

func (a *sight) truth(name string) bool { v, _ := a.take(name).(bool); return v }

func (a *sight) real(name string) float64 {
	switch v := a.take(name).(type) {
	case float64:
		return min(max(v, 0), 86400)
	case int64:
		return float64(min(max(v, 0), 86400))
	}
	return 0
}

// maxCount is the largest valid count; a larger one is ignored.
const maxCount = 1 << 40

// either is a count by its name, or else by another name.
func (a *sight) either(name, other string) (n int64, known bool) {
	for _, name := range []string{other, name} {
		var v int64
		switch x := a.take(name).(type) {
		case int64:
			v = x
		case float64:
			v = int64(min(max(x, -1), maxCount))
		case string:
			var err error
			if v, err = strconv.ParseInt(x, 10, 64); err != nil {
				continue
			}
		default:
			continue
		}
		if v >= 0 && v <= maxCount {
			n, known = v, true
		}
	}
	return n, known
}

// first is a text, or the first text of a list.
func (a *sight) first(name string) string {
	switch v := a.take(name).(type) {
	case string:
		var list []string
		if json.Unmarshal([]byte(v), &list) == nil && len(list) > 0 {
			return list[0]
		}
		return v
	case []any:
		if len(v) > 0 {
			return str(v[0])
		}
	}
	return ""
}

// json is a value that senders write either as JSON in a text, or directly.
func (a *sight) json(name string) any {
	v := a.take(name)
	if s, ok := v.(string); ok {
		if json.Valid([]byte(s)) {
			return json.RawMessage(s)
		}
		return s
	}
	return v
}

// flat collects the attributes PREFIX.0.role, PREFIX.0.content and so on.
func (a *sight) flat(prefix string) any {
	byIndex := map[int]map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(a.of)) {
		rest, ok := strings.CutPrefix(key, prefix)
		number, name, dotted := strings.Cut(rest, ".")
		n, err := strconv.Atoi(number)
		if !ok || !dotted || err != nil {
			continue
		}
		if byIndex[n] == nil {
			byIndex[n] = map[string]any{}
		}
		byIndex[n][name] = a.take(key)
	}
	if len(byIndex) == 0 {
		return nil
	}
	var list []any
	for _, n := range slices.Sorted(maps.Keys(byIndex)) {
		list = append(list, byIndex[n])
	}
	return list
}
