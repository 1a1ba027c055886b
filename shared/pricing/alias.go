package pricing

import "strings"

// findAlias looks a model up under other names with the same price: without its resource
// path (ARN, publishers/..., models/...), without Bedrock's region prefix, without version
// suffixes, and a fine-tuned model under its base. The names are tried from the least
// shortened one on; the first that the book has wins.
func (x *index) findAlias(provider, model string, o *Options) *entry {
	if short, ok := cutPath(model); ok {
		model = short
		if e := x.find(provider, model); e != nil {
			return e
		}
	}
	if tuned, ok := strings.CutPrefix(model, "ft:"); ok {
		return x.findTuned(provider, tuned, o)
	}
	if strings.HasPrefix(provider, "bedrock") {
		if region, bare, ok := cutRegion(model); ok {
			if o.Region == "" {
				o.Region = region
			}
			if e := x.findVersion(provider, model); e != nil {
				return e
			}
			if e := x.find(provider, bare); e != nil {
				return e
			}
			model = bare
		}
	}
	return x.findVersion(provider, model)
}

// findTuned resolves ft:base:organisation:name:id. It looks among the prices of fine-tuned
// models first.
func (x *index) findTuned(provider, tuned string, o *Options) *entry {
	base, _, _ := strings.Cut(tuned, ":")
	for _, name := range [...]string{"ft:" + base, base + ".ft"} {
		if e := x.find(provider, name); e != nil {
			return e
		}
		if e := x.findVersion(provider, name); e != nil {
			return e
		}
	}
	if e := x.find(provider, base); e != nil {
		return e
	}
	return x.findVersion(provider, base)
}

// findVersion removes one version suffix after the other.
func (x *index) findVersion(provider, model string) *entry {
	for range 4 {
		short, ok := cutVersion(provider, model)
		if !ok {
			return nil
		}
		if e := x.find(provider, short); e != nil {
			return e
		}
		model = short
	}
	return nil
}

// cutPath removes the resource path of an id. At many hosts slashes are part of the id, so
// only known paths are removed.
func cutPath(model string) (string, bool) {
	for _, prefix := range [...]string{"arn:", "models/", "publishers/", "projects/", "foundation-model/", "inference-profile/"} {
		if strings.HasPrefix(model, prefix) {
			if i := strings.LastIndexByte(model, '/'); i >= 0 {
				return model[i+1:], true
			}
		}
	}
	return model, false
}

// regionPrefixes are the geographies of cross-region inference profiles.
var regionPrefixes = [...]string{"us", "eu", "apac", "ap", "au", "jp", "ca", "in", "sa", "me", "af", "us-gov", "global"}

func cutRegion(model string) (region, bare string, ok bool) {
	head, rest, found := strings.Cut(model, ".")
	if !found {
		return "", model, false
	}
	for _, p := range regionPrefixes {
		if p == head {
			return head, rest, true
		}
	}
	return "", model, false
}

// cutVersion removes the last version suffix: @20250929 or @latest, -latest, -2025-08-07,
// -20250807, and at Bedrock :0, :200k and -v1.
func cutVersion(provider, model string) (string, bool) {
	if i := strings.LastIndexByte(model, '@'); i > 0 {
		return model[:i], true
	}
	if short, ok := strings.CutSuffix(model, "-latest"); ok && short != "" {
		return short, true
	}
	if n := len(model) - len("-2025-08-07"); n > 0 && isDate(model[n:], true) {
		return model[:n], true
	}
	if n := len(model) - len("-20250807"); n > 0 && isDate(model[n:], false) {
		return model[:n], true
	}
	if !strings.HasPrefix(provider, "bedrock") {
		return model, false
	}
	if i := strings.LastIndexByte(model, ':'); i > 0 {
		return model[:i], true
	}
	if n := len(model) - len("-v1"); n > 0 && model[n:n+2] == "-v" && isDigit(model[n+2]) {
		return model[:n], true
	}
	return model, false
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isDate reports whether s is -YYYYMMDD, or -YYYY-MM-DD when dashed.
func isDate(s string, dashed bool) bool {
	for i := range len(s) {
		if i == 0 || dashed && (i == 5 || i == 8) {
			if s[i] != '-' {
				return false
			}
		} else if !isDigit(s[i]) {
			return false
		}
	}
	return s[1] == '2' && s[2] == '0'
}
