package mcp

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"gateway/shared/fault"
	"gateway/shared/identity/bearer"
	"gateway/shared/provider"
	"gateway/shared/tenant/upstream"
)

// Defaults of JWTValidation.
const (
	defaultTolerance = 5 // seconds
	defaultKeyTTL    = 86_400
)

// RequiresToken reports whether clients must send a token in addition to their key.
func (i *Integration) RequiresToken() bool {
	raw := i.Configurations[confJWT]
	return len(raw) > 0 && string(raw) != "null" || slices.ContainsFunc(i.SecretMappings, func(m provider.SecretMapping) bool {
		top, _, _ := strings.Cut(strings.TrimPrefix(m.TargetField, configPrefix), ".")
		return top == confJWT
	})
}

// Header returns the header that contains the token.
func (j *JWTValidation) Header() string { return cmp.Or(j.HeaderKey, "Authorization") }

// Rules returns the validation rules. A rule that cannot be parsed rejects every token.
func (j *JWTValidation) Rules() *bearer.Rules {
	seconds := func(n int64) time.Duration { return time.Duration(n) * time.Second }
	r := &bearer.Rules{
		JWKSURI: j.JWKSURI, Introspect: j.IntrospectEndpoint, Kind: cmp.Or(j.IntrospectContentType, "application/json"),
		ClientID: j.IntrospectClientID, ClientSecret: j.IntrospectClientSecret,
		Remember: seconds(j.IntrospectCacheMaxAge), KeepSet: seconds(cmp.Or(j.CacheMaxAge, defaultKeyTTL)), Tolerance: seconds(cmp.Or(j.ClockTolerance, defaultTolerance)),
		Algorithms: j.Algorithms, NeedExpiry: true,
		Claims: bearer.ClaimRules{Required: j.RequiredClaims, Match: j.HeaderPayloadMatch},
	}
	if len(r.Algorithms) == 0 {
		r.Algorithms = []string{"RS256"}
	}
	if len(j.JWKS) > 0 {
		r.Inline = bearer.InPlace(j.JWKS)
	}
	if age, err := time.ParseDuration(j.MaxTokenAge); err == nil {
		r.MaxAge = age
	}
	patterns := map[string]*regexp.Regexp{}
	for _, claim := range slices.Sorted(maps.Keys(j.ClaimValues)) {
		v := j.ClaimValues[claim]
		r.Claims.Values = append(r.Claims.Values, bearer.ValueRule{Claim: claim, Wanted: v.Values, How: cmp.Or(v.MatchType, "exact")})
		for _, text := range v.Values {
			if re, err := regexp.Compile(text); v.MatchType == "regex" && err == nil {
				patterns[text] = re
			}
		}
	}
	r.Claims.Pattern = func(pattern, text string) (bool, error) {
		re := patterns[pattern]
		return re != nil && re.MatchString(text), nil
	}
	return r
}

// check returns the faults that the limits in the struct tags do not cover.
func (j *JWTValidation) check(at string) (bad []fault.Detail) {
	sources := 0
	for _, given := range []bool{j.JWKSURI != "", len(j.JWKS) > 0, j.IntrospectEndpoint != ""} {
		if given {
			sources++
		}
	}
	if sources != 1 {
		bad = append(bad, fault.Detail{Field: at, Message: "must have exactly one of jwksUri, jwks, introspectEndpoint"})
	}
	if len(j.JWKS) > 0 {
		if err := bearer.CheckSet(j.JWKS); err != nil {
			bad = append(bad, fault.Detail{Field: at + ".jwks", Message: err.Error()})
		}
	}
	if h := j.HeaderKey; h != "" && (!upstream.HeaderName(h) || upstream.Ours(strings.ToLower(h)) || http.CanonicalHeaderKey(h) == "X-Gateway-Api-Key") {
		bad = append(bad, fault.Detail{Field: at + ".headerKey", Message: "must be a valid header name, and not the header of the key"})
	}
	if j.MaxTokenAge != "" {
		if d, err := time.ParseDuration(j.MaxTokenAge); err != nil || d <= 0 {
			bad = append(bad, fault.Detail{Field: at + ".maxTokenAge", Message: "must be a duration such as 30m or 12h"})
		}
	}
	for _, claim := range slices.Sorted(maps.Keys(j.ClaimValues)) {
		v := j.ClaimValues[claim]
		if len(v.Values) == 0 {
			bad = append(bad, fault.Detail{Field: at + ".claimValues." + claim + ".values", Message: "must have an entry"})
		}
		for _, text := range v.Values {
			if _, err := regexp.Compile(text); v.MatchType == "regex" && err != nil {
				bad = append(bad, fault.Detail{Field: at + ".claimValues." + claim + ".values", Message: "must be a regular expression"})
			}
		}
	}
	return bad
}

// Fingerprint returns a string that differs for validations that differ, secrets included, or
// "" if it cannot be encoded.
func (j *JWTValidation) Fingerprint() string {
	raw, err := json.Marshal(j)
	if err != nil {
		return ""
	}
	return string(raw)
}
