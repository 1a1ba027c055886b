package gemini

import (
	"encoding/json"
	"strconv"

	"gateway/shared/wire"
)

// token is one token of a logprobsResult.
type token struct {
	text    string
	logprob []byte
}

func readToken(d *wire.Decoder) (t token) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return t
	}
	for key := range d.Object {
		switch string(key) {
		case "token":
			t.text = optString(d)
		case "logProbability":
			if d.Kind() == wire.KindNumber {
				t.logprob = d.Num()
			}
		}
	}
	return t
}

// appendLogprobs turns a logprobsResult into the logprobs object of the OpenAI
// shape: chosenCandidates are the tokens, topCandidates their alternatives.
func appendLogprobs(dst, raw []byte) []byte {
	var chosen []token
	var top [][]token
	d := wire.NewDecoder(raw)
	for key := range d.Object {
		switch {
		case string(key) == "chosenCandidates" && d.Kind() == wire.KindArray:
			for range d.Array {
				chosen = append(chosen, readToken(d))
			}
		case string(key) == "topCandidates" && d.Kind() == wire.KindArray:
			for range d.Array {
				top = append(top, readTop(d))
			}
		}
	}
	dst = append(dst, `{"content":[`...)
	for i, t := range chosen {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendToken(dst, t)
		dst = append(dst, `,"top_logprobs":[`...)
		if i < len(top) {
			for j, alternative := range top[i] {
				if j > 0 {
					dst = append(dst, ',')
				}
				dst = append(appendToken(dst, alternative), '}')
			}
		}
		dst = append(dst, `]}`...)
	}
	return append(dst, `],"refusal":null}`...)
}

func readTop(d *wire.Decoder) (ts []token) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return nil
	}
	for key := range d.Object {
		if string(key) == "candidates" && d.Kind() == wire.KindArray {
			for range d.Array {
				ts = append(ts, readToken(d))
			}
		}
	}
	return ts
}

// appendToken writes a token, but leaves its brace open.
func appendToken(dst []byte, t token) []byte {
	dst = append(dst, `{"token":`...)
	dst = wire.AppendJSONString(dst, t.text)
	dst = append(dst, `,"logprob":`...)
	if json.Valid(t.logprob) {
		dst = append(dst, t.logprob...)
	} else {
		dst = append(dst, '0')
	}
	dst = append(dst, `,"bytes":[`...)
	for i := range len(t.text) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, int64(t.text[i]), 10)
	}
	return append(dst, ']')
}
