package mockprovider

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/gorilla/websocket"
)

// bidiPath is where Live sessions of Gemini begin; a version follows.
const bidiPath = "/ws/google.ai.generativelanguage."

// bidiSession serves Live sessions of Gemini. Words in the client's text steer a turn:
// "chunks=3" (the last one counts); "tool" (the turn calls a tool, and continues with the
// result); "grows" (usage is reported twice and grows); "again" (usage is reported once more
// after the turn); "late" (usage is reported only after the turn); "no-usage"; "say=my_words";
// "heard=my_words" (the transcript of the client's speech); "hang" (the turn never ends);
// "drop". A client that requests it gets a handle that resumes the session.
func bidiSession(x *exchange) *apiError {
	version, method, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(x.path, "/v1"), bidiPath), ".")
	switch {
	case version != "v1" && version != "v1alpha" && version != "v1beta" || method != "GenerativeService.BidiGenerateContent":
		return &apiError{status: http.StatusNotFound, message: "Not found"}
	case !websocket.IsWebSocketUpgrade(x.r):
		return &apiError{status: http.StatusBadRequest, message: "This method takes WebSockets."}
	}
	up := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	ws, err := up.Upgrade(x.w, x.r, nil)
	if err != nil {
		return nil // it has answered
	}
	s := &bidiTalk{talk: talk{x: x, ws: ws}}
	s.serve(s.take, s.lost)
	return nil
}

// bidiTalk is one Live session.
type bidiTalk struct {
	talk
	model  string
	texts  bool
	prompt int64 // tokens of the conversation
	turns  int
	words  string // words of the turn that waits for the result of a tool
	row    *entry // row of a turn that never ends
	made   int64
}

type bidiMessage struct {
	Setup *struct {
		Model            string `json:"model"`
		GenerationConfig struct {
			Modalities []string `json:"responseModalities"`
			Most       int64    `json:"maxOutputTokens"`
		} `json:"generationConfig"`
		System              json.RawMessage `json:"systemInstruction"`
		InputTranscription  json.RawMessage `json:"inputAudioTranscription"`
		OutputTranscription json.RawMessage `json:"outputAudioTranscription"`
		Resume              *struct {
			Handle string `json:"handle"`
		} `json:"sessionResumption"`
	} `json:"setup"`
	Content *struct {
		Turns []struct {
			Role  string `json:"role"`
			Parts []struct {
				Text string `json:"text"`
			} `json:"parts"`
		} `json:"turns"`
		Complete bool `json:"turnComplete"`
	} `json:"clientContent"`
	Input *struct {
		Audio *struct {
			Data string `json:"data"`
			Mime string `json:"mimeType"`
		} `json:"audio"`
		Text string `json:"text"`
		End  bool   `json:"audioStreamEnd"`
	} `json:"realtimeInput"`
	Tool *struct {
		Responses []json.RawMessage `json:"functionResponses"`
	} `json:"toolResponse"`
}

// reject closes the session as the provider does after a message that it does not accept.
func (s *bidiTalk) reject(reason string) bool {
	s.end(websocket.CloseInvalidFramePayloadData, reason)
	return false
}

func (s *bidiTalk) take(body []byte) bool {
	var m bidiMessage
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return s.reject("Invalid JSON payload received. " + err.Error())
	}
	switch {
	case s.model == "" && m.Setup == nil:
		return s.reject("setup must be the first message and only the first")
	case s.model != "" && m.Setup != nil:
		return s.reject("setup must be the first message and only the first")
	}
	switch {
	case m.Setup != nil:
		name, ok := strings.CutPrefix(m.Setup.Model, "models/")
		if !ok || prices[name].input == 0 {
			s.end(websocket.ClosePolicyViolation, m.Setup.Model+" is not found for API version v1beta, or is not supported for bidiGenerateContent.")
			return false
		}
		s.model, s.texts = name, strings.Join(m.Setup.GenerationConfig.Modalities, "") == "TEXT"
		s.write(jsonObject{"setupComplete": jsonObject{}})
		if m.Setup.Resume != nil {
			s.write(jsonObject{"sessionResumptionUpdate": jsonObject{"newHandle": s.x.newID("resumes_", seedOf(name)), "resumable": true}})
		}
	case m.Content != nil:
		words := ""
		for _, t := range m.Content.Turns {
			for _, p := range t.Parts {
				words += " " + p.Text
			}
		}
		s.prompt += int64(len(strings.Fields(words)))
		if m.Content.Complete {
			return s.turn(words)
		}
	case m.Input != nil:
		if a := m.Input.Audio; a != nil {
			raw, err := base64.StdEncoding.DecodeString(a.Data)
			if err != nil {
				return s.reject("Invalid audio")
			}
			s.prompt += int64(len(raw)) / 1280
		}
		s.prompt += int64(len(strings.Fields(m.Input.Text)))
		if m.Input.Text != "" || m.Input.End {
			return s.turn(m.Input.Text)
		}
	case m.Tool != nil:
		s.prompt += 10
		words := s.words
		s.words = ""
		return s.turn(words)
	default:
		return s.reject("an empty message")
	}
	return true
}

// turn makes a turn.
func (s *bidiTalk) turn(words string) bool {
	s.turns++
	n, say := int64(3), ""
	for _, f := range strings.Fields(words) {
		name, value, _ := strings.Cut(f, "=")
		switch name {
		case "chunks":
			n, _ = strconv.ParseInt(value, 10, 64)
		case "say":
			say = strings.ReplaceAll(value, "_", " ")
		case "heard":
			s.content(jsonObject{"inputTranscription": jsonObject{"text": strings.ReplaceAll(value, "_", " ")}}, nil)
		}
	}
	has := func(word string) bool { return strings.Contains(words, word) }
	row := s.x.s.bill.begin(s.x.path, s.model, "turn"+strconv.Itoa(s.turns), true)
	prompt := s.prompt
	usage := func(out int64) jsonObject {
		return jsonObject{"promptTokenCount": prompt, "responseTokenCount": out, "totalTokenCount": prompt + out, "promptTokensDetails": []any{jsonObject{"modality": "TEXT", "tokenCount": prompt}}}
	}
	if has("tool") {
		s.words = strings.ReplaceAll(words, "tool", "")
		row.close(http.StatusOK, Usage{Input: prompt, Output: 2}, false, "")
		s.prompt += 2
		s.write(jsonObject{"toolCall": jsonObject{"functionCalls": []any{jsonObject{"id": "call_1", "name": "look", "args": jsonObject{}}}}, "usageMetadata": usage(2)})
		return true
	}
	for i := range n {
		s.piece(say, i, n)
		if has("grows") && i == 0 {
			s.write(jsonObject{"usageMetadata": usage(1)})
		}
	}
	switch {
	case has("drop"):
		row.close(http.StatusOK, Usage{Input: prompt, Output: n}, false, "")
		_ = s.ws.NetConn().Close()
		return false
	case has("hang"):
		s.row, s.made = &row, n
		return true
	}
	row.close(http.StatusOK, Usage{Input: prompt, Output: n}, false, "")
	s.prompt += n
	s.content(jsonObject{"generationComplete": true}, nil)
	switch {
	case has("no-usage"):
		s.content(jsonObject{"turnComplete": true}, nil)
	case has("late"):
		s.content(jsonObject{"turnComplete": true}, nil)
		s.write(jsonObject{"usageMetadata": usage(n)})
	default:
		s.content(jsonObject{"turnComplete": true}, usage(n))
	}
	if has("again") {
		s.write(jsonObject{"usageMetadata": usage(n)})
	}
	return true
}

// piece says a piece of a turn.
func (s *bidiTalk) piece(say string, i, n int64) {
	text := say
	if say == "" {
		text = "words "
	} else {
		text = say[int64(len(say))*i/n : int64(len(say))*(i+1)/n]
	}
	if s.texts {
		s.content(jsonObject{"modelTurn": jsonObject{"role": "model", "parts": []any{jsonObject{"text": text}}}}, nil)
		return
	}
	sound := jsonObject{"inlineData": jsonObject{"mimeType": "audio/pcm;rate=24000", "data": base64.StdEncoding.EncodeToString(make([]byte, 960))}}
	s.content(jsonObject{"modelTurn": jsonObject{"role": "model", "parts": []any{sound}}}, nil)
	s.content(jsonObject{"outputTranscription": jsonObject{"text": text}}, nil)
}

func (s *bidiTalk) content(c, usage jsonObject) {
	m := jsonObject{"serverContent": c}
	if usage != nil {
		m["usageMetadata"] = usage
	}
	s.write(m)
}

// lost charges a turn that never ended for what it has made.
func (s *bidiTalk) lost() {
	if s.row != nil {
		s.row.close(http.StatusOK, Usage{Input: s.prompt, Output: s.made}, false, "")
	}
}
