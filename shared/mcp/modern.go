package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"

	"gateway/shared/tenant/upstream"
)

// codeVersion is how upstreams without sessions refuse a version.
const codeVersion = "-32022"

// Modern is the version of the protocol without sessions.
const Modern = "2026-07-28"

// Names of what requests of that version say of themselves.
const (
	MetaPrefix    = "io.modelcontextprotocol/"
	MetaVersion   = MetaPrefix + "protocolVersion"
	MetaAbilities = MetaPrefix + "clientCapabilities"
	MetaClient    = MetaPrefix + "clientInfo"
	MetaServer    = MetaPrefix + "serverInfo"
	MetaLogLevel  = MetaPrefix + "logLevel"
	HeaderMethod  = "Mcp-Method"
	HeaderName    = "Mcp-Name"
)

// OwnName is what the gateway calls itself.
var OwnName = json.RawMessage(`{"name":"gateway","version":"1"}`)

// Discover asks an upstream whether it speaks without sessions, and what it is: hello is
// nil where it does not. versions are all that it names.
func (u *Upstream) Discover(ctx context.Context) (hello json.RawMessage, versions []string, err error) {
	hello, versions, again, err := u.discover(ctx)
	if again {
		hello, versions, _, err = u.discover(ctx)
	}
	return hello, versions, err
}

// discover asks once. again: the upstream refuses the version that it names itself as one
// that it speaks.
func (u *Upstream) discover(ctx context.Context) (hello json.RawMessage, versions []string, again bool, err error) {
	x, err := u.Send(ctx, http.MethodPost, http.Header{HeaderVersion: {Modern}, HeaderMethod: {"server/discover"}}, modernRequest(0, "server/discover", ""))
	if err != nil {
		return nil, nil, false, err
	}
	defer x.Close()
	if x.Status == http.StatusUnauthorized || x.Status == http.StatusForbidden || x.Status >= 500 {
		return nil, nil, false, upstream.Fail(x.Status, "the server answers with status %d", x.Status)
	}
	raw, err := x.Next()
	switch {
	case errors.Is(err, io.EOF), err != nil && x.Status != http.StatusOK:
		return nil, nil, false, nil // nothing, or words of its own
	case err != nil:
		return nil, nil, false, err
	}
	var said struct {
		Result json.RawMessage `json:"result"`
		Error  struct {
			Code json.RawMessage `json:"code"`
			Data struct {
				Supported []string `json:"supported"`
			} `json:"data"`
		} `json:"error"`
	}
	var found struct {
		Versions []string `json:"supportedVersions"`
	}
	if json.Unmarshal(raw, &said) != nil {
		return nil, nil, false, nil
	}
	if said.Result != nil && json.Unmarshal(said.Result, &found) == nil && slices.Contains(found.Versions, Modern) {
		return said.Result, found.Versions, false, nil
	}
	return nil, nil, string(said.Error.Code) == codeVersion && slices.Contains(said.Error.Data.Supported, Modern), nil
}

// modernRequest is a request of the gateway's own for nobody.
func modernRequest(id int, method, cursor string) []byte {
	params := map[string]any{"_meta": map[string]any{MetaVersion: Modern, MetaAbilities: struct{}{}, MetaClient: OwnName}}
	if cursor != "" {
		params["cursor"] = cursor
	}
	raw, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params}) // texts
	return raw
}

// pages is what lists are asked through.
type pages interface {
	page(ctx context.Context, method, cursor string) (json.RawMessage, error)
}

// page implements pages.
func (s *Session) page(ctx context.Context, method, cursor string) (json.RawMessage, error) {
	params := json.RawMessage("{}")
	if cursor != "" {
		params, _ = json.Marshal(map[string]string{"cursor": cursor}) // a text
	}
	return s.Call(ctx, method, params)
}

// withoutSession asks an upstream that needs none.
type withoutSession struct {
	up    *Upstream
	calls int
}

// page implements pages.
func (w *withoutSession) page(ctx context.Context, method, cursor string) (json.RawMessage, error) {
	w.calls++
	x, err := w.up.Send(ctx, http.MethodPost, http.Header{HeaderVersion: {Modern}, HeaderMethod: {method}}, modernRequest(w.calls, method, cursor))
	if err != nil {
		return nil, err
	}
	defer x.Close()
	m := &Message{ID: json.RawMessage(strconv.Itoa(w.calls))}
	for {
		raw, err := x.Next()
		if errors.Is(err, io.EOF) {
			return nil, upstream.Fail(x.Status, "the server answers with status %d and no result of %s", x.Status, method)
		}
		if err != nil {
			return nil, err
		}
		answer, err := parseAnswer(raw, m)
		switch {
		case err != nil:
			return nil, err
		case answer == nil:
		case answer.Error != nil:
			return nil, answer.Error
		default:
			return answer.Result, nil
		}
	}
}
