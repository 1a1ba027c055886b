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

// codeVersion is the error code of stateless servers for an unsupported version.
const codeVersion = "-32022"

// Modern is the stateless protocol version.
const Modern = "2026-07-28"

// Metadata fields and headers of stateless requests.
const (
	MetaPrefix       = "io.modelcontextprotocol/"
	MetaVersion      = MetaPrefix + "protocolVersion"
	MetaCapabilities = MetaPrefix + "clientCapabilities"
	MetaClient       = MetaPrefix + "clientInfo"
	MetaServer       = MetaPrefix + "serverInfo"
	MetaLogLevel     = MetaPrefix + "logLevel"
	HeaderMethod     = "Mcp-Method"
	HeaderName       = "Mcp-Name"
)

// ClientInfo is the gateway's Implementation object.
var ClientInfo = json.RawMessage(`{"name":"gateway","version":"1"}`)

// Discover requests an upstream's stateless self-description. hello is nil if the upstream
// does not support the stateless version. versions are the versions that it lists.
func (u *Upstream) Discover(ctx context.Context) (hello json.RawMessage, versions []string, err error) {
	hello, versions, again, err := u.discover(ctx)
	if again {
		hello, versions, _, err = u.discover(ctx)
	}
	return hello, versions, err
}

// discover makes one attempt. again is set if the upstream rejected the version although it
// lists the version as supported.
func (u *Upstream) discover(ctx context.Context) (hello json.RawMessage, versions []string, again bool, err error) {
	x, err := u.Send(ctx, http.MethodPost, http.Header{HeaderVersion: {Modern}, HeaderMethod: {"server/discover"}}, modernRequest(0, "server/discover", ""))
	if err != nil {
		return nil, nil, false, err
	}
	defer x.Close()
	if x.Status == http.StatusUnauthorized || x.Status == http.StatusForbidden || x.Status >= 500 {
		return nil, nil, false, upstream.Fail(x.Status, "the server responded with status %d", x.Status)
	}
	raw, err := x.Next()
	switch {
	case errors.Is(err, io.EOF), err != nil && x.Status != http.StatusOK:
		return nil, nil, false, nil // an empty or custom body
	case err != nil:
		return nil, nil, false, err
	}
	var response struct {
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
	if json.Unmarshal(raw, &response) != nil {
		return nil, nil, false, nil
	}
	if response.Result != nil && json.Unmarshal(response.Result, &found) == nil && slices.Contains(found.Versions, Modern) {
		return response.Result, found.Versions, false, nil
	}
	return nil, nil, string(response.Error.Code) == codeVersion && slices.Contains(response.Error.Data.Supported, Modern), nil
}

// modernRequest returns a stateless request that the gateway makes for itself.
func modernRequest(id int, method, cursor string) []byte {
	params := map[string]any{"_meta": map[string]any{MetaVersion: Modern, MetaCapabilities: struct{}{}, MetaClient: ClientInfo}}
	if cursor != "" {
		params["cursor"] = cursor
	}
	raw, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params}) // only strings
	return raw
}

// pageLister fetches one page of a list.
type pageLister interface {
	page(ctx context.Context, method, cursor string) (json.RawMessage, error)
}

func (s *Session) page(ctx context.Context, method, cursor string) (json.RawMessage, error) {
	params := json.RawMessage("{}")
	if cursor != "" {
		params, _ = json.Marshal(map[string]string{"cursor": cursor}) // a string
	}
	return s.Call(ctx, method, params)
}

// statelessClient lists the capabilities of a stateless upstream.
type statelessClient struct {
	up    *Upstream
	calls int
}

func (w *statelessClient) page(ctx context.Context, method, cursor string) (json.RawMessage, error) {
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
			return nil, upstream.Fail(x.Status, "the server responded with status %d and no result for %s", x.Status, method)
		}
		if err != nil {
			return nil, err
		}
		answer, err := parseResponse(raw, m)
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
