package gate

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"gateway/shared/a2a/wireformat"
	"gateway/shared/wire"
)

// judgeError returns an error of the agent that the guardrails allow, or the error of a denial:
// a model reads the text of an error like that of a result.
func judgeError(v *requestState, e *protocolError) error {
	raw, err := json.Marshal(map[string]any{"message": e.message, "data": e.data})
	if err != nil {
		return err
	}
	judged, denied := v.call.Judge(raw)
	if denied {
		return respondDenied(v)
	}
	if bytes.Equal(judged, raw) {
		return e
	}
	var of struct {
		Message string `json:"message"`
		Data    any    `json:"data"`
	}
	if json.Unmarshal(judged, &of) != nil {
		return respondDenied(v)
	}
	e.message, e.data = of.Message, of.Data
	return e
}

// tailOfArtifact is how much text of an artifact is judged together with the text that a stream
// appends to it, in bytes: the longest window of a streamed response.
const tailOfArtifact = 4000

// maxArtifacts limits the artifacts of one stream.
const maxArtifacts = 1000

// judgeArtifact judges a 1.0 event together with the end of the artifact that it continues,
// because the agent decides where it cuts the artifact into events.
func judgeArtifact(v *requestState, event any) error {
	o, _ := event.(wireformat.Object)
	update, ok := o["artifactUpdate"].(wireformat.Object)
	if !ok {
		return nil
	}
	artifact, _ := update["artifact"].(wireformat.Object)
	id := textOf(artifact["artifactId"])
	var text strings.Builder
	parts, _ := artifact["parts"].([]any)
	for _, p := range parts {
		part, _ := p.(wireformat.Object)
		text.WriteString(textOf(part["text"]))
	}
	before := v.artifacts[id]
	if appends, _ := update["append"].(bool); !appends {
		before = ""
	}
	whole := before + text.String()
	if v.artifacts == nil {
		v.artifacts = map[string]string{}
	}
	if _, known := v.artifacts[id]; !known && len(v.artifacts) >= maxArtifacts {
		return malformed(v, http.StatusOK, "has too many artifacts")
	}
	v.artifacts[id] = strings.ToValidUTF8(whole[max(0, len(whole)-tailOfArtifact):], "")
	if before == "" {
		return nil // it was judged by itself
	}
	if _, denied := v.call.Judge(append(wire.AppendJSONString([]byte(`{"parts":[{"text":`), whole), "}]}"...)); denied {
		return respondDenied(v)
	}
	return nil
}
