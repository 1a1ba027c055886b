// Package tokenresponse parses the responses of OAuth token endpoints (RFC 6749, 5.1 and 5.2)
// in the forms that authorization servers send.
package tokenresponse

import (
	"encoding/json"
	"errors"
	"mime"
	"net/url"
	"strconv"
	"strings"
	"time"

	"gateway/shared/wire"
)

// Response contains tokens or an error code.
type Response struct {
	Access  string
	Refresh string        // may be empty
	Expires time.Duration // after the response; zero if not stated
	Error   string        // error code of the server; empty if tokens were issued
}

// Limits of a response.
const (
	maxToken   = 16 << 10 // bytes
	maxDepth   = 16
	maxExpires = 366 * 24 * time.Hour
)

// ErrUnreadable is returned when a response has neither a usable token nor an error code.
var ErrUnreadable = errors.New("tokenresponse: no bearer token and no error code")

// Read parses the body of a response with the given Content-Type: JSON, or a form as GitHub
// sends it. expires_in may be a number or a string (Entra ID v1); absent, null and 0 mean that
// it is not stated. A missing token_type means bearer. An error code counts whatever the HTTP
// status is: GitHub sends bad_refresh_token with 200.
func Read(contentType string, body []byte) (Response, error) {
	fields, err := read(contentType, body)
	if err != nil {
		return Response{}, err
	}
	if code := fields["error"]; code != "" {
		return Response{Error: code}, nil
	}
	r := Response{Access: fields["access_token"], Refresh: fields["refresh_token"]}
	if t := fields["token_type"]; r.Access == "" || t != "" && !strings.EqualFold(t, "bearer") || !sendable(r.Access) || !sendable(r.Refresh) {
		return Response{}, ErrUnreadable
	}
	if text := fields["expires_in"]; text != "" {
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil || seconds != seconds {
			return Response{}, ErrUnreadable
		}
		if seconds > 0 {
			r.Expires = max(time.Second, time.Duration(min(seconds, maxExpires.Seconds())*float64(time.Second)))
		}
	}
	return r, nil
}

// read returns the fields of a response as strings. null counts as absent.
func read(contentType string, body []byte) (map[string]string, error) {
	fields := map[string]string{"access_token": "", "token_type": "", "expires_in": "", "refresh_token": "", "error": ""}
	if media, _, _ := mime.ParseMediaType(contentType); media == "application/x-www-form-urlencoded" {
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return nil, ErrUnreadable
		}
		for name := range fields {
			if len(form[name]) > 1 {
				return nil, ErrUnreadable
			}
			fields[name] = form.Get(name)
		}
		return fields, nil
	}
	var members map[string]json.RawMessage
	if wire.CheckStrict(body, maxDepth) != nil || json.Unmarshal(body, &members) != nil {
		return nil, ErrUnreadable
	}
	for name := range fields {
		raw := members[name]
		switch wire.KindOf(raw) {
		case wire.KindString:
			var text string
			if err := json.Unmarshal(raw, &text); err != nil {
				return nil, ErrUnreadable
			}
			fields[name] = text
		case wire.KindNumber:
			if name != "expires_in" {
				return nil, ErrUnreadable
			}
			fields[name] = string(raw)
		default:
			if len(raw) > 0 && string(raw) != "null" {
				return nil, ErrUnreadable
			}
		}
	}
	return fields, nil
}

// sendable reports whether a token can be sent in a header.
func sendable(token string) bool {
	return len(token) <= maxToken && !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
}

// EndsGrant reports whether an error code means that the refresh token is permanently invalid.
func EndsGrant(code string) bool {
	return code == "invalid_grant" || code == "bad_refresh_token" // bad_refresh_token is sent by GitHub
}
