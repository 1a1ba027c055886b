package declare

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"time"
)

// equal reports whether a live value is as wanted. A mapping may have further fields, which
// the document leaves as they are, unless exact is set. Absent, null and empty are the same.
// An unknown secret is as any live one; a known one must fit its mask.
func equal(want, have any, exact bool) bool {
	if empty(want) {
		return empty(have)
	}
	switch w := want.(type) {
	case secret:
		switch h := have.(type) {
		case mask:
			return !w.known || h.fits(w.value)
		case string:
			return w.known && w.value == h
		}
		return false
	case map[string]any:
		h, ok := have.(map[string]any)
		if !ok {
			return false
		}
		for k, v := range w {
			if !equal(v, h[k], exact) {
				return false
			}
		}
		if exact {
			for k, v := range h {
				if _, named := w[k]; !named && !empty(v) {
					return false
				}
			}
		}
		return true
	case []any:
		h, ok := have.([]any)
		if !ok || len(h) != len(w) {
			return false
		}
		for i := range w {
			if !equal(w[i], h[i], exact) {
				return false
			}
		}
		return true
	}
	return equalScalars(want, have)
}

func equalScalars(want, have any) bool {
	if want == have {
		return true
	}
	if h, isMask := have.(mask); isMask {
		text, isText := want.(string)
		return isText && h.fits(text)
	}
	a, b := flagNumber(want), flagNumber(have)
	if x, ok := new(big.Rat).SetString(a); ok && isNumber(want) {
		y, ok := new(big.Rat).SetString(b)
		return ok && isNumber(have) && x.Cmp(y) == 0
	}
	if x, err := time.Parse(time.RFC3339, a); err == nil {
		y, err := time.Parse(time.RFC3339, b)
		return err == nil && x.Equal(y)
	}
	return false
}

// isNumber reports whether v is a number, or a boolean, which some fields write as 0 and 1.
func isNumber(v any) bool {
	switch v := v.(type) {
	case json.Number:
		return len(v) < 64 && !strings.ContainsAny(string(v), "/") // no exponent that grows without bound
	case bool, int:
		return true
	}
	return false
}

func flagNumber(v any) string {
	switch v {
	case true:
		return "1"
	case false:
		return "0"
	}
	return fmt.Sprint(v)
}

// empty reports whether a value is as good as absent.
func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		for _, e := range v {
			if !empty(e) {
				return false
			}
		}
		return true
	}
	return false
}

// byKey compares lists of objects by the value of one of their fields: each wanted one must
// be there; others are left as they are.
func byKey(key string, want, have any, absent map[string]any) bool {
	rows := map[string]any{}
	h, _ := have.([]any)
	for _, e := range h {
		if m, ok := e.(map[string]any); ok {
			rows[fmt.Sprint(m[key])] = m
		}
	}
	w, _ := want.([]any)
	for _, e := range w {
		m, ok := e.(map[string]any)
		if !ok {
			return false
		}
		row, there := rows[fmt.Sprint(m[key])]
		if !there {
			own := map[string]any{key: m[key]}
			for k, v := range absent {
				own[k] = v
			}
			row = own
		}
		if !equal(m, row, false) {
			return false
		}
	}
	return true
}
