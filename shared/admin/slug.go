package admin

import (
	"crypto/rand"
	"encoding/hex"
	"regexp"
	"strings"
)

// SlugPattern is what slugs that people choose must match.
var SlugPattern = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// Slugs is how a family makes slugs from names.
type Slugs struct {
	Prefix string // such as pc-
	Max    int    // characters of the slugified name; default 6
	Plain  bool   // no random end: the slug is the slugified name
}

// Make gives a new slug: prefix, slugified name, six random hex digits.
func (s Slugs) Make(name string) string {
	limit := s.Max
	if limit == 0 {
		limit = 6
	}
	base := slugify(name)
	if len(base) > limit {
		base = base[:limit]
	}
	base = strings.Trim(base, "-")
	if s.Plain && base != "" {
		return s.Prefix + base
	}
	var b [3]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	if base == "" {
		return s.Prefix + hex.EncodeToString(b[:])
	}
	return s.Prefix + base + "-" + hex.EncodeToString(b[:])
}

// slugify retains ASCII letters and digits and joins the rest with single hyphens.
func slugify(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	return strings.Trim(b.String(), "-")
}
