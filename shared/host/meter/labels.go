package meter

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"gateway/shared/host/metric"
	"gateway/shared/usage"
)

// EnvLabels is the variable with additional labels of the metrics that dashboards of
// other gateways read, separated by commas: model, config_name (its slug), api_key_id,
// api_key_name, and metadata_<key> for a key of the request's metadata. None by default.
const EnvLabels = "GATEWAY_METRICS_LABELS"

const (
	maxLabels   = 8   // additional labels
	maxDistinct = 100 // values of one additional label; further ones become "other"
)

// extraLabel is one of the additional labels.
type extraLabel struct {
	name string
	of   func(r *usage.Record) string
	seen map[string]bool
}

// extraLabels parses the value of EnvLabels. It ignores unknown labels and duplicates.
func extraLabels(value string) (out []*extraLabel) {
	for name := range strings.SplitSeq(value, ",") {
		f := &extraLabel{name: strings.TrimSpace(name), seen: map[string]bool{}}
		switch key, metadata := strings.CutPrefix(f.name, "metadata_"); {
		case f.name == "model":
			f.of = func(r *usage.Record) string { return pairOf(r).model }
		case f.name == "config_name":
			f.of = func(r *usage.Record) string { return r.ConfigSlug }
		case f.name == "api_key_id":
			f.of = func(r *usage.Record) string { return r.KeyID }
		case f.name == "api_key_name":
			f.of = func(r *usage.Record) string { return r.KeyName }
		case metadata && key != "":
			f.name = "metadata_" + labelName(key)
			f.of = func(r *usage.Record) string { return r.Metadata[key] }
		default:
			continue
		}
		if len(out) < maxLabels && !slices.ContainsFunc(out, func(o *extraLabel) bool { return o.name == f.name }) {
			out = append(out, f)
		}
	}
	return out
}

// labelName replaces the characters that are not allowed in label names.
func labelName(key string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' {
			return c
		}
		return '_'
	}, key)
}

// value returns the label's value for a record. Callers can invent values, so only the
// first ones are distinguished.
func (f *extraLabel) value(r *usage.Record) string {
	v := f.of(r)
	switch {
	case v == "":
		return missing
	case f.seen[v]:
		return v
	case len(f.seen) >= maxDistinct || len(v) > maxName || !printable(v):
		return metric.Other
	}
	f.seen[v] = true
	return v
}

// printable reports whether a value is UTF-8 text without control characters.
func printable(v string) bool {
	return utf8.ValidString(v) && !strings.ContainsFunc(v, func(c rune) bool { return c != ' ' && !unicode.IsPrint(c) })
}
