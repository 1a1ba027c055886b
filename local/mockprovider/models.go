package mockprovider

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
)

var openAIModels = []string{
	"gpt-3.5-turbo-instruct", "gpt-4.1", "gpt-4.1-mini", "gpt-4o", "gpt-4o-mini", "gpt-5", "gpt-5-mini", "o4-mini",
	"text-embedding-3-large", "text-embedding-3-small", "mock-echo", "mock-reasoning", "mock-tools",
}

var anthropicModels = []string{
	"claude-3-5-sonnet-20241022", "claude-haiku-4-5", "claude-opus-4-5", "claude-sonnet-4-20250514", "claude-sonnet-4-5",
	"mock-echo", "mock-thinking", "mock-tools",
}

// models serves GET /models, and GET and DELETE of one model.
func models(x *exchange, id string) *apiError {
	known := openAIModels
	if x.anthropic {
		known = anthropicModels
	}
	if id == "" && x.r.Method == http.MethodGet {
		return modelList(x, known)
	}
	switch {
	case id != "" && !slices.Contains(known, id) && x.anthropic:
		return &apiError{status: http.StatusNotFound, message: "model: " + id}
	case id != "" && !slices.Contains(known, id):
		return &apiError{status: http.StatusNotFound, code: "model_not_found", param: "model", message: "The model '" + id + "' does not exist"}
	case id != "" && x.r.Method == http.MethodGet:
		return listed(x, modelOf(x, id))
	case id != "" && x.r.Method == http.MethodDelete && !x.anthropic:
		return listed(x, fill(`{"id":$,"object":"model","deleted":true}`, id))
	}
	return &apiError{status: http.StatusMethodNotAllowed, message: "Not allowed to " + x.r.Method + " on " + x.path + "."}
}

func modelOf(x *exchange, id string) []byte {
	if x.anthropic {
		return fill(`{"type":"model","id":$,"display_name":$,"created_at":"2025-01-01T00:00:00Z"}`, id, id)
	}
	return fill(`{"id":$,"object":"model","created":1735689600,"owned_by":"mock"}`, id)
}

func modelList(x *exchange, known []string) *apiError {
	var models []json.RawMessage
	for _, id := range known {
		models = append(models, modelOf(x, id))
	}
	if x.anthropic {
		return listed(x, fill(`{"data":$,"has_more":false,"first_id":$,"last_id":$}`, list(models), known[0], known[len(known)-1]))
	}
	return listed(x, fill(`{"object":"list","data":$}`, list(models)))
}

// listed answers a read that costs nothing, with the faults that were ordered.
func listed(x *exchange, body []byte) *apiError {
	model := x.model
	x.model = "" // it is not charged
	id, done, e := x.begin("", 0, false)
	if done {
		return e
	}
	x.model = model
	x.plain(id, body, Usage{})
	return nil
}

// echo responds with what arrived, so that pass-through can be checked byte by byte.
func echo(x *exchange) *apiError {
	sum := sha256.Sum256(x.body)
	rec := Received{Method: x.r.Method, Path: x.path, Query: x.query, Host: x.r.Host, Headers: x.r.Header, Body: x.body, Length: x.r.ContentLength}
	b, err := rec.MarshalJSON()
	if err != nil {
		return &apiError{status: http.StatusInternalServerError, message: err.Error()}
	}
	b = append(b[:len(b)-1], `,"body_sha256":"`+hex.EncodeToString(sum[:])+`","body_length":`+strconv.Itoa(len(x.body))+`}`...)
	return listed(x, b)
}

// maxBinary limits a download.
const maxBinary = 256 << 20

// sendBinary sends size bytes; byte i is i modulo 251.
func sendBinary(x *exchange, size string) *apiError {
	n, err := strconv.Atoi(size)
	if err != nil || n < 0 || n > maxBinary {
		return badRequest("", "", "the path must end in a number of bytes, at most "+strconv.Itoa(maxBinary))
	}
	x.w.Header().Set("Content-Type", "application/octet-stream")
	x.w.Header().Set("Content-Length", size)
	x.w.WriteHeader(http.StatusOK)
	chunk := make([]byte, 0, 251*128)
	for i := 0; i < n; {
		chunk = chunk[:0]
		for ; i < n && len(chunk) < cap(chunk); i++ {
			chunk = append(chunk, byte(i%251))
		}
		if _, err := x.w.Write(chunk); err != nil {
			return nil
		}
	}
	return nil
}
