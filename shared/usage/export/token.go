package export

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"gateway/shared/fault"
	"gateway/shared/seal"
)

// ErrNoFile is the uniform response to invalid tokens.
var ErrNoFile = fault.New(fault.NotFound, "token", "The file does not exist or the link has expired; request a new download link")

// A token is the organization's id, a dot and a sealed grant.

// grant is the sealed content of a token.
type grant struct {
	Key   string    `json:"key"`
	Until time.Time `json:"until"`
}

func binding(org string) seal.Binding { return seal.Binding{Org: org, Table: "export-link"} }

var spelling = base64.RawURLEncoding.Strict()

// Token returns a text that lets its holder read a file until a time.
func Token(ctx context.Context, s seal.Sealer, org, key string, until time.Time) (string, error) {
	raw, err := json.Marshal(grant{key, until})
	if err != nil {
		return "", err
	}
	sealed, err := s.Seal(ctx, binding(org), raw)
	if err != nil {
		return "", err
	}
	return spelling.EncodeToString([]byte(org)) + "." + spelling.EncodeToString(sealed), nil
}

// ReadToken returns the key of the file that a token grants. Errors: ErrNoFile.
func ReadToken(ctx context.Context, s seal.Sealer, token string, now time.Time) (key string, err error) {
	first, second, _ := strings.Cut(token, ".")
	org, err := spelling.DecodeString(first)
	if err != nil || len(org) == 0 || len(org) > 255 {
		return "", ErrNoFile
	}
	sealed, err := spelling.DecodeString(second)
	if err != nil || len(sealed) == 0 {
		return "", ErrNoFile
	}
	raw, err := s.Open(ctx, binding(string(org)), sealed)
	if errors.Is(err, seal.ErrRefused) {
		return "", ErrNoFile
	}
	if err != nil {
		return "", err
	}
	var g grant
	if err := json.Unmarshal(raw, &g); err != nil || now.After(g.Until) {
		return "", ErrNoFile
	}
	return g.Key, nil
}
